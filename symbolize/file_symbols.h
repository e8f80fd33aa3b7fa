// Every name that an ELF file has for its own code.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "symbolize/elf/elf_image.h"
#include "symbolize/elf/symbol_table.h"
#include "symbolize/unwind/function_ranges.h"

namespace xpu {

// From .symtab, .dynsym, .gnu_debugdata (a compressed .symtab that distributions leave in stripped
// files), the table of Go's runtime, and the entries of the procedure linkage table, named
// `function@plt`.
class FileSymbols {
 public:
  // `debug`: the separate file with the symbols of a stripped one, nullptr: none. Both images must
  // outlive this. A part that is damaged gives no names; the others give theirs.
  explicit FileSymbols(const ElfImage& file, const ElfImage* debug = nullptr);
  FileSymbols(const FileSymbols&) = delete;  // names point into texts_
  FileSymbols& operator=(const FileSymbols&) = delete;

  const SymbolTable& table() const { return table_; }

  // Functions that `link_addresses` lie in and no symbol names, from the file's unwind tables. Each
  // once, with an empty name.
  std::vector<ElfSymbol> NamelessAt(std::span<const uint64_t> link_addresses) const;
  // More than the dynamic symbols: what is not exported has names too.
  bool has_local_names() const { return has_local_names_; }

 private:
  std::vector<ElfSymbol> Collect(const ElfImage& file, const ElfImage* debug);
  void AppendDebugData(const ElfImage& file, std::vector<ElfSymbol>& symbols);

  const FunctionRanges ranges_;
  std::deque<std::string> texts_;  // what names point into beside the images
  bool has_local_names_ = false;
  SymbolTable table_;
};

}  // namespace xpu
