#include "symbolize/elf/go_functions.h"

#include <cstdint>
#include <optional>
#include <span>

#include "symbolize/elf/elf_bytes.h"

namespace xpu {
namespace {

// The first four bytes; each release that changed the layout took another value.
constexpr uint32_t kGo12 = 0xfffffffb;
constexpr uint32_t kGo116 = 0xfffffffa;
constexpr uint32_t kGo118 = 0xfffffff0;
constexpr uint32_t kGo120 = 0xfffffff1;  // the same layout as 1.18

// Real programs have some 100 000.
constexpr uint64_t kMaxFunctions = 4'000'000;
constexpr uint64_t kWord = 8;

class GoTable {
 public:
  // `bytes` of the section; `text_address` serves where the linker left it to relocations.
  static std::optional<GoTable> Open(std::span<const std::byte> bytes, uint64_t text_address) {
    uint32_t magic = 0;
    uint8_t word = 0;
    if (!ReadAt(bytes, 0, magic) || !ReadAt(bytes, 7, word) || word != kWord) return std::nullopt;
    GoTable table(bytes);
    const bool is_known = magic == kGo12                       ? table.ReadGo12()
                          : magic == kGo116                    ? table.ReadGo116()
                          : magic == kGo118 || magic == kGo120 ? table.ReadGo118(text_address)
                                                               : false;
    if (!is_known || table.count_ > kMaxFunctions) return std::nullopt;
    return table;
  }

  std::vector<ElfSymbol> Functions() const {
    std::vector<ElfSymbol> functions;
    for (uint64_t i = 0; i < count_; ++i) {
      const auto begin = Field(i, 0);
      const auto record = Field(i, 1);
      const auto end = Field(i + 1, 0);
      if (!begin || !record || !end) break;
      if (*end <= *begin) continue;
      const std::string_view name = NameOf(*record);
      if (name.empty()) continue;
      functions.push_back({.link_address = text_ + *begin,
                           .size_bytes = *end - *begin,
                           .name = name,
                           .binding = ElfBinding::kLocal,
                           .is_function = true});
    }
    return functions;
  }

 private:
  explicit GoTable(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Word `i` after the first eight bytes.
  bool HeaderWord(uint64_t i, uint64_t& value) const {
    return ReadAt(bytes_, kWord + i * kWord, value);
  }

  bool ReadGo12() {
    entry_bytes_ = kWord;
    functions_ = 2 * kWord;
    return HeaderWord(0, count_);
  }
  bool ReadGo116() {
    entry_bytes_ = kWord;
    if (!HeaderWord(0, count_) || !HeaderWord(2, names_) || !HeaderWord(6, functions_))
      return false;
    records_ = functions_;
    return true;
  }
  bool ReadGo118(uint64_t text_address) {
    entry_bytes_ = sizeof(uint32_t);
    if (!HeaderWord(0, count_) || !HeaderWord(2, text_) || !HeaderWord(3, names_) ||
        !HeaderWord(7, functions_)) {
      return false;
    }
    if (text_ == 0) text_ = text_address;
    records_ = functions_;
    return true;
  }

  // The table of functions: pairs of where code begins and where its record is, at the end one more
  // address.
  std::optional<uint64_t> Field(uint64_t i, uint64_t field) const {
    const auto pairs = Inside(bytes_, functions_, bytes_.size());
    const uint64_t offset = (2 * i + field) * entry_bytes_;
    uint32_t narrow = 0;
    uint64_t wide = 0;
    if (entry_bytes_ == kWord)
      return ReadAt(pairs, offset, wide) ? std::optional(wide) : std::nullopt;
    return ReadAt(pairs, offset, narrow) ? std::optional<uint64_t>(narrow) : std::nullopt;
  }

  // A record begins with the entry's address, then the place of the name.
  std::string_view NameOf(uint64_t record) const {
    int32_t name = 0;
    if (record > bytes_.size() || !ReadAt(bytes_, records_ + record + entry_bytes_, name))
      return {};
    if (name < 0 || names_ > bytes_.size()) return {};
    return TextAt(AsChars(bytes_), names_ + static_cast<uint64_t>(name));
  }

  std::span<const std::byte> bytes_;
  uint64_t entry_bytes_ = 0;
  uint64_t count_ = 0;
  uint64_t text_ = 0;       // what addresses count from
  uint64_t functions_ = 0;  // places in the table
  uint64_t records_ = 0;
  uint64_t names_ = 0;
};

}  // namespace

std::vector<ElfSymbol> ReadGoFunctions(const ElfImage& file) {
  ElfSection section = file.Section(".gopclntab");
  if (!section.exists) section = file.Section(".data.rel.ro.gopclntab");
  const auto table = GoTable::Open(section.bytes, file.SectionWithoutBytes(".text").link_address);
  return table ? table->Functions() : std::vector<ElfSymbol>();
}

}  // namespace xpu
