#include "symbolize/elf/symbol_table.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace xpu {
namespace {

size_t LeadingUnderscores(std::string_view name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

// Smaller is better.
auto Preference(const ElfSymbol& symbol) {
  return std::tuple(!symbol.is_function, -static_cast<int>(symbol.binding),
                    symbol.name.find('@') != std::string_view::npos,
                    LeadingUnderscores(symbol.name), symbol.name, ~symbol.size_bytes);
}

uint64_t EndOf(const ElfSymbol& symbol) {
  const uint64_t end = symbol.link_address + symbol.size_bytes;
  return end < symbol.link_address ? std::numeric_limits<uint64_t>::max() : end;
}

}  // namespace

SymbolTable::SymbolTable(std::vector<ElfSymbol> symbols) : symbols_(std::move(symbols)) {
  std::sort(symbols_.begin(), symbols_.end(), [](const ElfSymbol& a, const ElfSymbol& b) {
    if (a.link_address != b.link_address) return a.link_address < b.link_address;
    return Preference(a) < Preference(b);
  });
  // Aliases may differ in size (one of them often has none): the largest counts.
  size_t kept = 0;
  for (size_t i = 0; i < symbols_.size(); ++i) {
    if (kept > 0 && symbols_[kept - 1].link_address == symbols_[i].link_address) {
      uint64_t& size = symbols_[kept - 1].size_bytes;
      size = std::max(size, symbols_[i].size_bytes);
    } else {
      symbols_[kept++] = symbols_[i];
    }
  }
  symbols_.resize(kept);
  symbols_.shrink_to_fit();
  end_so_far_.reserve(kept);
  uint64_t end = 0;
  for (size_t i = 0; i < kept; ++i) {
    if (symbols_[i].size_bytes == 0) {
      symbols_[i].size_bytes =
          i + 1 < kept ? symbols_[i + 1].link_address - symbols_[i].link_address : 1;
    }
    end = std::max(end, EndOf(symbols_[i]));
    end_so_far_.push_back(end);
  }
}

const ElfSymbol* SymbolTable::Find(uint64_t link_address) const {
  const auto after = std::upper_bound(
      symbols_.begin(), symbols_.end(), link_address,
      [](uint64_t address, const ElfSymbol& symbol) { return address < symbol.link_address; });
  size_t i = static_cast<size_t>(after - symbols_.begin());
  // Ranges nest a level or two in real files; a file made to nest deeper must not cost more.
  for (int steps = 0; i > 0 && steps < 64; ++steps) {
    --i;
    if (end_so_far_[i] <= link_address) return nullptr;
    if (EndOf(symbols_[i]) > link_address) return &symbols_[i];
  }
  return nullptr;
}

}  // namespace xpu
