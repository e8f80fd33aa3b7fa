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

bool MayDefine(const ElfImage& image, std::string_view name) {
  constexpr uint32_t kWordBits = 64;
  struct {
    uint32_t buckets, first_symbol, filter_words, shift;
  } head{};
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  const uint64_t table = image.SectionWithoutBytes(".gnu.hash").link_address;
  if (!ReadAt(image.BytesAtLinkAddress(table, sizeof(head)), 0, head) || head.filter_words == 0) {
    return false;
  }
  const uint64_t place = table + sizeof(head) + hash / kWordBits % head.filter_words * 8;
  uint64_t word = 0;
  ReadAt(image.BytesAtLinkAddress(place, sizeof(word)), 0, word);
  const uint32_t second = head.shift < 32 ? hash >> head.shift : 0;
  return (word >> hash % kWordBits & word >> second % kWordBits & 1) != 0;
}

}  // namespace xpu
