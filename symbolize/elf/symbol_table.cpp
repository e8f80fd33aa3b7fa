#include "symbolize/elf/symbol_table.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace xpu {
namespace {

size_t LeadingUnderscores(std::string_view name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

// "memcpy@@GLIBC_2.14" is memcpy. "memcpy@plt" is another thing.
std::string_view WithoutVersion(std::string_view name) {
  return name.ends_with("@plt") ? name : name.substr(0, name.find('@', 1));
}

bool IsBetter(const ElfSymbol& a, const ElfSymbol& b) {
  if (a.name.empty() != b.name.empty()) return b.name.empty();
  if (a.is_function != b.is_function) return a.is_function;
  if (a.binding != b.binding) return a.binding > b.binding;
  // The same name in .symtab and .dynsym is the usual case.
  if (a.name == b.name) return false;
  const auto preference = [](std::string_view name) {  // smaller is better
    return std::tuple(name.find('@') != std::string_view::npos, LeadingUnderscores(name), name);
  };
  return preference(a.name) < preference(b.name);
}

uint64_t EndOf(const ElfSymbol& symbol) {
  const uint64_t end = symbol.link_address + symbol.size_bytes;
  return end < symbol.link_address ? std::numeric_limits<uint64_t>::max() : end;
}

}  // namespace

SymbolTable::SymbolTable(const std::vector<ElfSymbol>& symbols) {
  // Sorted by address alone: of a million symbols twice as fast as whole symbols by preference, and
  // names that differ late, made to cost much, are compared once each.
  std::vector<std::pair<uint64_t, size_t>> order;
  order.reserve(symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) order.emplace_back(symbols[i].link_address, i);
  std::sort(order.begin(), order.end());
  symbols_.reserve(symbols.size());
  for (const auto& [address, i] : order) {
    if (symbols_.empty() || symbols_.back().link_address != address) {
      symbols_.push_back(symbols[i]);
      continue;
    }
    // Aliases may differ in size (one of them often has none): the largest counts.
    ElfSymbol& best = symbols_.back();
    const uint64_t size = std::max(best.size_bytes, symbols[i].size_bytes);
    if (IsBetter(symbols[i], best)) best = symbols[i];
    best.size_bytes = size;
  }
  symbols_.shrink_to_fit();
  SetEnds();
}

void SymbolTable::SetEnds() {
  end_so_far_.reserve(symbols_.size());
  uint64_t end = 0;
  for (size_t i = 0; i < symbols_.size(); ++i) {
    ElfSymbol& symbol = symbols_[i];
    symbol.name = WithoutVersion(symbol.name);
    if (symbol.size_bytes == 0) {
      symbol.size_bytes =
          i + 1 < symbols_.size() ? symbols_[i + 1].link_address - symbol.link_address : 1;
    }
    end = std::max(end, EndOf(symbol));
    end_so_far_.push_back(end);
  }
}

SymbolTable SymbolTable::With(std::span<const ElfSymbol> more) const {
  std::vector<ElfSymbol> all = symbols_;
  all.insert(all.end(), more.begin(), more.end());
  return SymbolTable(all);
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
