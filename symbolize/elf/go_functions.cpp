#include "symbolize/elf/go_functions.h"

#include <cstdint>
#include <optional>
#include <span>

#include <elf.h>

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
  // `bytes` of the section; `text_address` serves where the linker left it to relocations, or out.
  static std::optional<GoTable> Open(std::span<const std::byte> bytes, uint64_t text_address) {
    uint32_t magic = 0;
    uint8_t word = 0;
    if (!ReadAt(bytes, 0, magic) || !ReadAt(bytes, 7, word) || word != kWord) return std::nullopt;
    GoTable table(bytes);
    const bool is_known = magic == kGo12                       ? table.ReadGo12()
                          : magic == kGo116                    ? table.ReadGo116()
                          : magic == kGo118 || magic == kGo120 ? table.ReadGo118(text_address)
                                                               : false;
    if (magic == kGo118) table.flags_in_record_ = 37;
    if (magic == kGo120) table.flags_in_record_ = 41;
    if (!is_known || table.count_ > kMaxFunctions) return std::nullopt;
    return table;
  }

  std::vector<ElfSymbol> Functions() const {
    std::vector<ElfSymbol> functions;
    ForEach([&](uint64_t begin, uint64_t end, uint64_t record) {
      const std::string_view name = NameOf(record);
      if (name.empty()) return;
      functions.push_back({.link_address = begin,
                           .size_bytes = end - begin,
                           .name = name,
                           .binding = ElfBinding::kLocal,
                           .is_function = true});
    });
    return functions;
  }

  std::vector<GoFrame> Frames() const {
    constexpr uint8_t kIsTop = 1, kWritesStackPointer = 2;
    std::vector<GoFrame> frames;
    if (flags_in_record_ == 0) return frames;
    uint64_t last = 0;
    ForEach([&](uint64_t begin, uint64_t end, uint64_t record) {
      uint32_t depths = 0;
      uint8_t flags = 0;
      if (begin < last || record > bytes_.size() ||
          !ReadAt(bytes_, records_ + record + kDepthsInRecord, depths) ||
          !ReadAt(bytes_, records_ + record + flags_in_record_, flags)) {
        return;
      }
      last = end;
      frames.push_back({.begin = begin,
                        .end = end,
                        .is_outermost = (flags & kIsTop) != 0,
                        .switches_stacks = (flags & kWritesStackPointer) != 0,
                        .depths = Inside(bytes_, depths_ + depths, bytes_.size())});
    });
    return frames;
  }

 private:
  static constexpr uint64_t kDepthsInRecord = 16;

  // visit(begin, end, record)
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (uint64_t i = 0; i < count_; ++i) {
      const auto begin = Field(i, 0);
      const auto record = Field(i, 1);
      const auto end = Field(i + 1, 0);
      if (!begin || !record || !end) break;
      if (*end > *begin) visit(text_ + *begin, text_ + *end, *record);
    }
  }

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
        !HeaderWord(6, depths_) || !HeaderWord(7, functions_) || depths_ > bytes_.size()) {
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
  uint64_t depths_ = 0;
  uint64_t flags_in_record_ = 0;  // 0: its frames are not read
};

// The word that the loader writes to `address`, which is zero in the file; nullopt: none.
std::optional<uint64_t> RelocatedWord(const ElfImage& file, uint64_t address) {
  const ElfSection relocations = file.Section(".rela.dyn");
  Elf64_Rela relocation;
  for (uint64_t at = 0; ReadAt(relocations.bytes, at, relocation); at += sizeof(relocation)) {
    if (relocation.r_offset == address && ELF64_R_TYPE(relocation.r_info) == R_X86_64_RELATIVE)
      return static_cast<uint64_t>(relocation.r_addend);
  }
  return std::nullopt;
}

// A linker that is not Go's own puts the table of a position-independent program among other data.
ElfSection TableIn(ElfSection data) {
  constexpr uint64_t kAlignment = 32;
  constexpr uint64_t kSizes = uint64_t{0x0801} << 48;  // of words and of the smallest instruction
  uint64_t begin = 0;
  for (uint64_t at = 0; ReadAt(data.bytes, at, begin); at += kAlignment) {
    if (begin != (kSizes | kGo118) && begin != (kSizes | kGo120)) continue;
    data.bytes = data.bytes.subspan(at);
    data.link_address += at;
    return data;
  }
  return {};
}

std::optional<GoTable> Open(const ElfImage& file) {
  constexpr uint64_t kTextInHeader = 3 * kWord;
  ElfSection section = file.Section(".gopclntab");
  if (!section.exists) section = file.Section(".data.rel.ro.gopclntab");
  if (!section.exists && file.SectionWithoutBytes(".go.buildinfo").exists) {
    section = TableIn(file.Section(".data.rel.ro"));
  }
  if (!section.exists) return std::nullopt;
  uint64_t text = file.SectionWithoutBytes(".text").link_address;
  if (file.type() == ET_DYN) {
    text = RelocatedWord(file, section.link_address + kTextInHeader).value_or(text);
  }
  return GoTable::Open(section.bytes, text);
}

}  // namespace

std::vector<ElfSymbol> ReadGoFunctions(const ElfImage& file) {
  const auto table = Open(file);
  return table ? table->Functions() : std::vector<ElfSymbol>();
}

std::vector<GoFrame> ReadGoFrames(const ElfImage& file) {
  const auto table = Open(file);
  return table ? table->Frames() : std::vector<GoFrame>();
}

}  // namespace xpu
