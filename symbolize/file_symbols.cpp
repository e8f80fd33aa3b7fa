#include "symbolize/file_symbols.h"

#include <algorithm>

#include "symbolize/elf/debug_data.h"
#include "symbolize/elf/go_functions.h"
#include "symbolize/elf/plt_entries.h"

namespace xpu {
namespace {

void Append(std::vector<ElfSymbol>& symbols, const std::vector<ElfSymbol>& more) {
  symbols.insert(symbols.end(), more.begin(), more.end());
}

// A name that the file gives to an entry is better than ours.
void AppendUnnamed(std::vector<ElfSymbol>& symbols, std::vector<ElfSymbol> entries) {
  std::ranges::sort(entries, {}, &ElfSymbol::link_address);
  for (const ElfSymbol& symbol : symbols) {
    const uint64_t address = symbol.link_address;
    auto entry = std::ranges::lower_bound(entries, address, {}, &ElfSymbol::link_address);
    for (; entry != entries.end() && entry->link_address == address; ++entry) entry->name = {};
  }
  std::erase_if(entries, [](const ElfSymbol& entry) { return entry.name.empty(); });
  Append(symbols, entries);
}

}  // namespace

FileSymbols::FileSymbols(const ElfImage& file, const ElfImage* debug)
    : ranges_(file), table_(Collect(file, debug)) {}

std::vector<ElfSymbol> FileSymbols::Collect(const ElfImage& file, const ElfImage* debug) {
  std::vector<ElfSymbol> symbols = file.CodeSymbols();
  has_local_names_ = file.has_symtab();
  if (debug != nullptr) {
    Append(symbols, debug->CodeSymbols(file.segments()));
    has_local_names_ = has_local_names_ || debug->has_symtab();
  }
  if (!has_local_names_) AppendDebugData(file, symbols);
  if (!has_local_names_) {
    const std::vector<ElfSymbol> functions = ReadGoFunctions(file);
    Append(symbols, functions);
    has_local_names_ = !functions.empty();
  }
  AppendUnnamed(symbols, ReadPltEntries(file, symbols, texts_.emplace_back()));
  return symbols;
}

std::vector<ElfSymbol> FileSymbols::NamelessAt(std::span<const uint64_t> link_addresses) const {
  std::vector<ElfSymbol> nameless;
  for (const uint64_t address : link_addresses) {
    if (table_.Find(address) != nullptr) continue;
    const auto range = ranges_.Find(address);
    if (!range) continue;
    nameless.push_back({.link_address = range->begin,
                        .size_bytes = range->end - range->begin,
                        .name = {},
                        .binding = ElfBinding::kLocal,
                        .is_function = true});
  }
  std::ranges::sort(nameless, {}, &ElfSymbol::link_address);
  const auto is_same = [](const ElfSymbol& a, const ElfSymbol& b) {
    return a.link_address == b.link_address;
  };
  nameless.erase(std::unique(nameless.begin(), nameless.end(), is_same), nameless.end());
  return nameless;
}

void FileSymbols::AppendDebugData(const ElfImage& file, std::vector<ElfSymbol>& symbols) {
  const ElfSection section = file.Section(".gnu_debugdata");
  if (section.is_compressed) return;  // by the linker, once more: nobody does
  const std::string& text = texts_.emplace_back(DecompressDebugData(section.bytes));
  const auto inner = ElfImage::Parse(std::as_bytes(std::span(text)), ".gnu_debugdata");
  if (!inner.ok() || !inner.value().has_symtab()) return;
  Append(symbols, inner.value().CodeSymbols(file.segments()));
  has_local_names_ = true;
}

}  // namespace xpu
