#include "symbolize/elf/plt_entries.h"

#include <cstring>
#include <map>

#include <elf.h>
#include <gtest/gtest.h>

#include "symbolize/file_symbols.h"

namespace xpu {
namespace {

constexpr uint64_t kBase = 0x400000;   // file offset 0
constexpr uint64_t kCode = 0x1000;     // file offset of the entries
constexpr uint64_t kSlots = 0x403000;  // slot i at kSlots + 8 i
constexpr uint64_t kResolver = kBase + kCode + 0x800;

template <typename T>
void Append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string Bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

// An ELF file with a dynamic segment; everything is in one executable segment.
class PltFile {
 public:
  // `function` of the slot with the next number; "": its relocation names a resolver.
  PltFile& Slot(std::string_view function, uint64_t type = R_X86_64_JUMP_SLOT) {
    uint64_t symbol = 0;
    if (!function.empty()) {
      symbol = symbols_.size() / sizeof(Elf64_Sym);
      Elf64_Sym entry{};
      entry.st_name = static_cast<Elf64_Word>(names_.size());
      Append(symbols_, entry);
      names_ += std::string(function) + '\0';
    }
    const Elf64_Rela relocation{kSlots + 8 * slots_++, ELF64_R_INFO(symbol, type),
                                function.empty() ? static_cast<int64_t>(kResolver) : 0};
    Append(type == R_X86_64_GLOB_DAT ? relocations_ : plt_relocations_, relocation);
    return *this;
  }
  // `before`, jmp *slot(%rip), `after`.
  PltFile& Jump(const std::string& before, uint64_t slot, const std::string& after) {
    code_ += before + Bytes({0xff, 0x25});
    const uint64_t next = kBase + kCode + code_.size() + 4;
    Append(code_, static_cast<int32_t>(kSlots + 8 * slot - next));
    code_ += after;
    return *this;
  }
  PltFile& Code(const std::string& code) {
    code_ += code;
    return *this;
  }
  PltFile& WithoutSections() {
    has_sections_ = false;
    return *this;
  }

  std::string Build() const {
    std::string file(sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr), '\0');
    const auto add = [&](const std::string& part) {
      const uint64_t offset = file.size();
      file += part;
      return kBase + offset;
    };
    std::string dynamic;
    const auto tag = [&](int64_t name, uint64_t value) {
      Append(dynamic, Elf64_Dyn{name, {value}});
    };
    tag(DT_SYMTAB, add(symbols_));
    tag(DT_STRTAB, add(names_));
    tag(DT_STRSZ, names_.size());
    tag(DT_JMPREL, add(plt_relocations_));
    tag(DT_PLTRELSZ, plt_relocations_.size());
    tag(DT_RELA, add(relocations_));
    tag(DT_RELASZ, relocations_.size());
    tag(DT_NULL, 0);
    const uint64_t dynamic_address = add(dynamic);
    EXPECT_LE(file.size(), kCode);
    file.resize(kCode);
    file += code_;
    file.resize(kCode + 0x1000, '\xcc');

    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = EM_X86_64;
    header.e_phoff = sizeof(header);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    if (has_sections_) AddSections(header, file);
    const Elf64_Phdr load{PT_LOAD, PF_R | PF_X, 0, kBase, kBase, kCode + 0x1000, kCode + 0x1000, 1};
    const Elf64_Phdr dynamic_header{
        PT_DYNAMIC,      PF_R,           dynamic_address - kBase, dynamic_address,
        dynamic_address, dynamic.size(), dynamic.size(),          8};
    std::memcpy(file.data(), &header, sizeof(header));
    std::memcpy(file.data() + sizeof(header), &load, sizeof(load));
    std::memcpy(file.data() + sizeof(header) + sizeof(load), &dynamic_header, sizeof(load));
    return file;
  }

 private:
  void AddSections(Elf64_Ehdr& header, std::string& file) const {
    const std::string names("\0.plt\0.names\0", 13);
    Elf64_Shdr plt{};
    plt.sh_name = 1;
    plt.sh_type = SHT_PROGBITS;
    plt.sh_addr = kBase + kCode;
    plt.sh_offset = kCode;
    plt.sh_size = code_.size();
    Elf64_Shdr strings{};
    strings.sh_name = 6;
    strings.sh_type = SHT_STRTAB;
    strings.sh_offset = file.size();
    strings.sh_size = names.size();
    file += names;
    header.e_shoff = file.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 3;
    header.e_shstrndx = 2;
    Append(file, Elf64_Shdr{});
    Append(file, plt);
    Append(file, strings);
  }

  std::string symbols_ = std::string(sizeof(Elf64_Sym), '\0');
  std::string names_ = std::string(1, '\0');
  std::string plt_relocations_;
  std::string relocations_;
  std::string code_;
  uint64_t slots_ = 0;
  bool has_sections_ = true;
};

const std::string kLandingPad = Bytes({0xf3, 0x0f, 0x1e, 0xfa});
const std::string kBnd = Bytes({0xf2});
const std::string kLazyEnd = Bytes({0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0});

// Offset within the code -> name and size.
std::map<uint64_t, std::pair<std::string, uint64_t>> EntriesOf(
    const std::string& file, const std::vector<ElfSymbol>& symbols = {}) {
  std::map<uint64_t, std::pair<std::string, uint64_t>> found;
  const auto image = ElfImage::Parse(std::as_bytes(std::span(file)), "plt");
  if (!image.ok()) return found;
  std::string names;
  for (const ElfSymbol& symbol : ReadPltEntries(image.value(), symbols, names)) {
    EXPECT_TRUE(symbol.is_function);
    found[symbol.link_address - kBase - kCode] = {std::string(symbol.name), symbol.size_bytes};
  }
  return found;
}

using Entries = std::map<uint64_t, std::pair<std::string, uint64_t>>;

// One entry of each form that a linker writes.
PltFile AllForms() {
  PltFile file;
  for (const char* name : {"lazy", "now", "with_bnd", "with_cet", "of_mold"}) file.Slot(name);
  file.Slot("short", R_X86_64_GLOB_DAT);
  return file
      .Code(Bytes(
          {0xff, 0x35, 1, 2, 3, 4, 0xff, 0x25, 9, 9, 9, 9, 0x0f, 0x1f, 0x40, 0}))  // the first
      .Jump("", 0, kLazyEnd)
      .Jump(kLandingPad, 1, Bytes({0x66, 0x0f, 0x1f, 0x44, 0, 0}))
      .Jump(kBnd, 2, Bytes({0x0f, 0x1f, 0x44, 0, 0, 0x90, 0x90, 0x90, 0x90}))
      .Jump(kLandingPad + kBnd, 3, Bytes({0x0f, 0x1f, 0x44, 0, 0}))
      .Jump(kLandingPad + Bytes({0x41, 0xbb, 4, 0, 0, 0}), 4, "")
      .Jump("", 5, Bytes({0x66, 0x90}));
}

const Entries kAllForms = {{0x10, {"lazy@plt", 16}},     {0x20, {"now@plt", 16}},
                           {0x30, {"with_bnd@plt", 16}}, {0x40, {"with_cet@plt", 16}},
                           {0x50, {"of_mold@plt", 16}},  {0x60, {"short@plt", 8}}};

TEST(PltEntries, EveryForm) { EXPECT_EQ(EntriesOf(AllForms().Build()), kAllForms); }

TEST(PltEntries, WithoutSectionHeaders) {
  EXPECT_EQ(EntriesOf(AllForms().WithoutSections().Build()), kAllForms);
}

// There the code must have the whole form: `jmp *function@GOT(%rip)` may also be in a function.
TEST(PltEntries, WithoutSectionHeadersAJumpAloneIsNone) {
  PltFile file = PltFile().Slot("called", R_X86_64_GLOB_DAT).Jump("", 0, std::string(10, '\x55'));
  EXPECT_EQ(EntriesOf(file.Build()), (Entries{{0, {"called@plt", 16}}}));
  EXPECT_EQ(EntriesOf(file.WithoutSections().Build()), Entries{});
}

// The lazy half of an entry with CET pushes the number of its relocation.
TEST(PltEntries, ThoseThatOnlyPushTheirNumber) {
  const std::string file =
      PltFile()
          .Slot("first")
          .Slot("second")
          .Code(kLandingPad + Bytes({0x68, 1, 0, 0, 0, 0xe9, 0, 0, 0, 0, 0x66, 0x90}))
          .Code(Bytes({0x68, 0, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x0f, 0x1f, 0x44, 0, 0}))
          .Code(kLandingPad + Bytes({0x68, 2, 0, 0, 0, 0xe9, 0, 0, 0, 0, 0x66, 0x90}))
          .Build();
  EXPECT_EQ(EntriesOf(file), (Entries{{0, {"second@plt", 16}}, {0x10, {"first@plt", 16}}}));
}

TEST(PltEntries, UnknownSlotsAndVersions) {
  const std::string file =
      PltFile().Slot("read@GLIBC_2.2.5").Jump("", 1, kLazyEnd).Jump("", 0, kLazyEnd).Build();
  EXPECT_EQ(EntriesOf(file), (Entries{{0x10, {"read@plt", 16}}}));
}

TEST(PltEntries, AFunctionChosenAtStartHasTheNameAtItsResolver) {
  const std::string file = PltFile().Slot("", R_X86_64_IRELATIVE).Jump("", 0, kLazyEnd).Build();
  const auto symbol = [](std::string_view name, uint64_t address) {
    return ElfSymbol{.link_address = address,
                     .size_bytes = 0x20,
                     .name = name,
                     .binding = ElfBinding::kGlobal,
                     .is_function = true};
  };
  EXPECT_EQ(EntriesOf(file), Entries{});
  EXPECT_EQ(EntriesOf(file, {symbol("before", kResolver - 1)}), Entries{});
  EXPECT_EQ(EntriesOf(file, {symbol("__strlen", kResolver), symbol("strlen", kResolver),
                             symbol("before", kResolver - 1)}),
            (Entries{{0, {"strlen@plt", 16}}}));
}

TEST(PltEntries, CutAtEveryByteAndEveryByteFlipped) {
  const std::string file = AllForms().Build();
  for (size_t size = 0; size < file.size(); ++size) EntriesOf(file.substr(0, size));
  for (size_t at = 0; at < file.size(); ++at) {
    if (at == kCode + 0x80) at = kCode + 0x1000;  // nothing but padding
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      EntriesOf(damaged);
    }
  }
}

// This program calls libc: the names are there, and none is on a function of its own.
TEST(PltEntries, ThisProgram) {
  auto file = ElfFile::Open("/proc/self/exe");
  ASSERT_TRUE(file.ok());
  const FileSymbols symbols(file.value().image());
  const SymbolTable own(file.value().image().CodeSymbols());
  size_t entries = 0;
  for (const ElfSymbol& symbol : symbols.table().symbols()) {
    if (!symbol.name.ends_with("@plt")) continue;
    ++entries;
    const ElfSymbol* covering = own.Find(symbol.link_address);
    EXPECT_TRUE(covering == nullptr || covering->link_address != symbol.link_address)
        << symbol.name;
  }
  EXPECT_GT(entries, 10u);
}

}  // namespace
}  // namespace xpu
