#include "symbolize/elf/data_symbol.h"

#include <elf.h>

#include "symbolize/elf/elf_bytes.h"

namespace xpu {
namespace {

std::optional<uint64_t> FindIn(const ElfSection& symbols, const ElfSection& names,
                               std::string_view name) {
  const std::span<const char> texts = AsChars(names.bytes);
  Elf64_Sym symbol{};
  for (uint64_t at = 0; ReadAt(symbols.bytes, at, symbol); at += sizeof(symbol)) {
    if (symbol.st_shndx != SHN_UNDEF && TextAt(texts, symbol.st_name) == name) {
      return symbol.st_value;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> FindSymbolAddress(const ElfImage& image, std::string_view name) {
  const auto found = FindIn(image.Section(".dynsym"), image.Section(".dynstr"), name);
  return found ? found : FindIn(image.Section(".symtab"), image.Section(".strtab"), name);
}

}  // namespace xpu
