#include "symbolize/elf/cubin.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <elf.h>

#include "symbolize/elf/elf_bytes.h"

namespace xpu {
namespace {

using Bytes = std::span<const std::byte>;

// Where a slice's code lies in memory: at its offset in the file and this. No function is at 0.
constexpr uint64_t kSliceBase = uint64_t{1} << 20;
constexpr uint64_t kCodeAlignment = 128;
// Of tables that a cubin was made to have. Those of libraries have some ten thousand.
constexpr uint64_t kMaxCubinSections = uint64_t{1} << 20;
constexpr uint32_t kRelocation64 = 2;  // R_CUDA_64

template <typename T>
void AppendValue(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string_view ViewOf(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct CubinSymbol {
  Elf64_Sym entry;
  uint32_t section = 0;
  std::string_view name;
  bool is_function() const { return ELF64_ST_TYPE(entry.st_info) == STT_FUNC; }
};

class CubinReader {
 public:
  static std::optional<CubinReader> Open(Bytes bytes);

  uint32_t flags() const { return header_.e_flags; }
  uint8_t abi() const { return header_.e_ident[EI_OSABI]; }
  uint64_t symbol_count() const { return symbols_.size() / sizeof(Elf64_Sym); }
  std::optional<CubinSymbol> Symbol(uint64_t index) const;
  std::string_view NameOf(uint32_t section) const;
  Bytes Content(uint32_t section) const;
  Bytes Content(std::string_view name) const;

 private:
  std::optional<Elf64_Shdr> Header(uint64_t section) const;
  Bytes ContentOf(const Elf64_Shdr& header) const;

  Bytes bytes_;
  Elf64_Ehdr header_{};
  uint64_t section_count_ = 0;
  std::span<const char> section_names_;
  std::span<const char> symbol_names_;
  Bytes symbols_;
  Bytes symbol_sections_;  // of those whose number does not fit into the symbol
};

std::optional<CubinReader> CubinReader::Open(Bytes bytes) {
  CubinReader reader;
  reader.bytes_ = bytes;
  Elf64_Ehdr& header = reader.header_;
  if (!ReadAt(bytes, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != kCubinMachine || header.e_shentsize != sizeof(Elf64_Shdr)) {
    return std::nullopt;
  }
  // Of more than 65279 sections the first one has the numbers.
  Elf64_Shdr first{};
  if (!ReadAt(bytes, header.e_shoff, first)) return std::nullopt;
  reader.section_count_ = header.e_shnum != 0 ? header.e_shnum : first.sh_size;
  if (reader.section_count_ > kMaxCubinSections) return std::nullopt;
  const uint32_t names = header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx : first.sh_link;
  reader.section_names_ = AsChars(reader.Content(names));
  for (uint64_t i = 1; i < reader.section_count_; ++i) {
    const auto section = reader.Header(i);
    if (!section) break;
    if (section->sh_type == SHT_SYMTAB && reader.symbols_.empty()) {
      reader.symbols_ = reader.ContentOf(*section);
      reader.symbol_names_ = AsChars(reader.Content(section->sh_link));
    }
    if (section->sh_type == SHT_SYMTAB_SHNDX) {
      reader.symbol_sections_ = reader.ContentOf(*section);
    }
  }
  return reader;
}

std::optional<Elf64_Shdr> CubinReader::Header(uint64_t section) const {
  Elf64_Shdr header{};
  if (section >= section_count_ || header_.e_shoff > bytes_.size()) return std::nullopt;
  if (!ReadAt(bytes_, header_.e_shoff + section * sizeof(header), header)) return std::nullopt;
  return header;
}

Bytes CubinReader::ContentOf(const Elf64_Shdr& header) const {
  if (header.sh_type == SHT_NOBITS) return {};
  return Inside(bytes_, header.sh_offset, header.sh_size);
}

Bytes CubinReader::Content(uint32_t section) const {
  const auto header = Header(section);
  return header ? ContentOf(*header) : Bytes();
}

Bytes CubinReader::Content(std::string_view name) const {
  for (uint64_t i = 1; i < section_count_; ++i) {
    const auto header = Header(i);
    if (header && TextAt(section_names_, header->sh_name) == name) return ContentOf(*header);
  }
  return {};
}

std::string_view CubinReader::NameOf(uint32_t section) const {
  const auto header = Header(section);
  return header ? TextAt(section_names_, header->sh_name) : std::string_view();
}

std::optional<CubinSymbol> CubinReader::Symbol(uint64_t index) const {
  CubinSymbol symbol{};
  if (!ReadAt(symbols_, index * sizeof(Elf64_Sym), symbol.entry)) return std::nullopt;
  symbol.section = symbol.entry.st_shndx;
  if (symbol.entry.st_shndx == SHN_XINDEX) {
    if (!ReadAt(symbol_sections_, index * sizeof(uint32_t), symbol.section)) return std::nullopt;
  } else if (symbol.entry.st_shndx >= SHN_LORESERVE) {
    symbol.section = 0;
  }
  symbol.name = TextAt(symbol_names_, symbol.entry.st_name);
  return symbol;
}

// ---- lines ----------------------------------------------------------------------------------

// Where a relocation of the line table puts a function's sequence of rows.
struct Placement {
  uint64_t offset = 0;                   // in .debug_line, of the address
  std::optional<uint64_t> link_address;  // none: of a function that is left out
};

// A table of lines for each function that is placed. What comes first in a function's sequence is
// its address (0, the length 9, DW_LNE_set_address, eight bytes); the sequence ends where the next
// one begins.
class LineCutter {
 public:
  LineCutter(Bytes table, std::vector<Placement> placements)
      : table_(table), placements_(std::move(placements)) {
    std::ranges::sort(placements_, {}, &Placement::offset);
  }

  // nullopt: damaged or too large.
  std::optional<std::string> Cut() {
    for (uint64_t at = 0; at < table_.size();) {
      uint32_t length = 0;
      if (!ReadAt(table_, at, length) || length < kLeastUnit) return std::nullopt;
      const uint64_t end = at + sizeof(length) + length;
      if (end > table_.size() || !CutUnit(at, end)) return std::nullopt;
      at = end;
    }
    return std::move(out_);
  }

 private:
  static constexpr uint32_t kLeastUnit = 8;
  static constexpr char kSetAddress[] = {0, 9, 2};

  bool CutUnit(uint64_t begin, uint64_t end) {
    uint16_t version = 0;
    if (!ReadAt(table_, begin + 4, version)) return false;
    const uint64_t length_at = begin + (version >= 5 ? 8 : 6);
    uint32_t header_bytes = 0;
    if (!ReadAt(table_, length_at, header_bytes)) return false;
    const uint64_t program = length_at + sizeof(header_bytes) + header_bytes;
    if (program > end) return false;
    auto place = std::ranges::lower_bound(placements_, program, {}, &Placement::offset);
    for (; place != placements_.end() && place->offset < end; ++place) {
      if (!place->link_address) continue;
      const auto next = place + 1;
      uint64_t stop = end;
      if (next != placements_.end() && next->offset < end)
        stop = next->offset - sizeof(kSetAddress);
      if (!CutSequence(begin, program, *place, stop)) return false;
    }
    return true;
  }

  bool CutSequence(uint64_t unit, uint64_t program, const Placement& place, uint64_t stop) {
    const uint64_t start = place.offset - sizeof(kSetAddress);
    const uint64_t rest = place.offset + sizeof(uint64_t);
    if (start < program || rest > stop) return false;
    if (ViewOf(Inside(table_, start, sizeof(kSetAddress))) !=
        std::string_view(kSetAddress, sizeof(kSetAddress))) {
      return false;
    }
    const uint64_t bytes = (program - unit) + (stop - start);
    if (out_.size() + bytes > kMaxCubinSliceBytes / 2) return false;
    AppendValue(out_, static_cast<uint32_t>(bytes - sizeof(uint32_t)));
    out_ += ViewOf(Inside(table_, unit + sizeof(uint32_t), program - unit - sizeof(uint32_t)));
    out_.append(kSetAddress, sizeof(kSetAddress));
    AppendValue(out_, *place.link_address);
    out_ += ViewOf(Inside(table_, rest, stop - rest));
    return true;
  }

  Bytes table_;
  std::vector<Placement> placements_;
  std::string out_;
};

// ---- the slice ------------------------------------------------------------------------------

class CubinSliceWriter {
 public:
  explicit CubinSliceWriter(const CubinReader& cubin)
      : cubin_(cubin), out_(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), '\0') {
    sections_.emplace_back();
  }

  std::optional<MadeCubinSlice> Write(const std::set<std::string>& wanted) {
    MadeCubinSlice slice;
    for (uint64_t i = 0; i < cubin_.symbol_count(); ++i) {
      const auto symbol = cubin_.Symbol(i);
      if (!symbol || !symbol->is_function() || symbol->section == 0) continue;
      std::string name(symbol->name);
      if (!wanted.contains(name) || !Place(symbol->section)) continue;
      slice.functions.insert(std::move(name));
    }
    if (slice.functions.empty()) return std::nullopt;
    code_end_ = out_.size();
    AddSymbols();
    AddLines(slice);
    Finish();
    slice.bytes = std::move(out_);
    return slice;
  }

 private:
  struct Placed {
    uint64_t link_address = 0;
    uint64_t size_bytes = 0;
    uint16_t index = 0;  // of its section in the slice
  };

  uint32_t AddName(std::string_view name) {
    const auto offset = static_cast<uint32_t>(names_.size());
    names_.append(name).push_back('\0');
    return offset;
  }

  Elf64_Shdr& Add(std::string_view name, uint32_t type, uint64_t alignment,
                  std::string_view bytes) {
    out_.resize((out_.size() + alignment - 1) / alignment * alignment);
    Elf64_Shdr header{};
    header.sh_name = AddName(name);
    header.sh_type = type;
    header.sh_offset = out_.size();
    header.sh_size = bytes.size();
    header.sh_addralign = alignment;
    out_ += bytes;
    return sections_.emplace_back(header);
  }

  // False: there is no room for its code.
  bool Place(uint32_t section) {
    if (placed_.contains(section)) return true;
    const Bytes code = cubin_.Content(section);
    if (code.empty() || sections_.size() >= SHN_LORESERVE - 16 ||
        out_.size() + code.size() + kCodeAlignment > kMaxCubinSliceBytes / 2) {
      return false;
    }
    Elf64_Shdr& header = Add(cubin_.NameOf(section), SHT_PROGBITS, kCodeAlignment, ViewOf(code));
    header.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    header.sh_addr = kSliceBase + header.sh_offset;
    placed_[section] = {header.sh_addr, code.size(), static_cast<uint16_t>(sections_.size() - 1)};
    return true;
  }

  // All functions of the sections: what is called and not inlined lies in that of its caller.
  void AddSymbols() {
    std::string locals;
    std::string globals;
    AppendValue(locals, Elf64_Sym{});
    for (uint64_t i = 0; i < cubin_.symbol_count(); ++i) {
      const auto symbol = cubin_.Symbol(i);
      if (!symbol || !symbol->is_function()) continue;
      const auto placed = placed_.find(symbol->section);
      if (placed == placed_.end() || symbol->entry.st_value >= placed->second.size_bytes) continue;
      if (names_.size() + locals.size() + globals.size() > kMaxCubinSliceBytes / 4) break;
      Elf64_Sym entry{};
      entry.st_name = AddName(symbol->name);
      entry.st_info = symbol->entry.st_info;
      entry.st_shndx = placed->second.index;
      entry.st_value = placed->second.link_address + symbol->entry.st_value;
      entry.st_size = std::min<uint64_t>(symbol->entry.st_size,
                                         placed->second.size_bytes - symbol->entry.st_value);
      AppendValue(ELF64_ST_BIND(entry.st_info) == STB_LOCAL ? locals : globals, entry);
    }
    const size_t local_count = locals.size() / sizeof(Elf64_Sym);
    Elf64_Shdr& header = Add(".symtab", SHT_SYMTAB, 8, locals + globals);
    header.sh_info = static_cast<Elf64_Word>(local_count);
    header.sh_entsize = sizeof(Elf64_Sym);
    symbol_table_ = sections_.size() - 1;
  }

  std::vector<Placement> ReadPlacements() const {
    const Bytes relocations = cubin_.Content(".rela.debug_line");
    std::vector<Placement> placements;
    Elf64_Rela entry{};
    for (uint64_t at = 0; ReadAt(relocations, at, entry); at += sizeof(entry)) {
      if (ELF64_R_TYPE(entry.r_info) != kRelocation64) continue;
      Placement& placement = placements.emplace_back();
      placement.offset = entry.r_offset;
      const auto symbol = cubin_.Symbol(ELF64_R_SYM(entry.r_info));
      if (!symbol) continue;
      const auto placed = placed_.find(symbol->section);
      if (placed == placed_.end()) continue;
      placement.link_address = placed->second.link_address + symbol->entry.st_value +
                               static_cast<uint64_t>(entry.r_addend);
    }
    return placements;
  }

  void AddLines(MadeCubinSlice& slice) {
    const Bytes table = cubin_.Content(".debug_line");
    if (table.empty()) return;
    const auto lines = LineCutter(table, ReadPlacements()).Cut();
    if (!lines) {
      slice.lines_left_out = true;
      return;
    }
    if (lines->empty()) return;
    Add(".debug_line", SHT_PROGBITS, 1, *lines);
    for (const std::string_view name : {".debug_str", ".debug_line_str"}) {
      const Bytes texts = cubin_.Content(name);
      if (texts.empty()) continue;
      if (out_.size() + texts.size() > kMaxCubinSliceBytes) {
        slice.lines_left_out = true;
      } else {
        Add(name, SHT_PROGBITS, 1, ViewOf(texts));
      }
    }
  }

  void Finish() {
    sections_[symbol_table_].sh_link = static_cast<Elf64_Word>(sections_.size());
    AddName(".strtab");
    const std::string names = names_;
    Elf64_Shdr& header = Add(".strtab", SHT_STRTAB, 1, names);
    header.sh_name = static_cast<Elf64_Word>(names.size() - sizeof(".strtab"));
    out_.resize((out_.size() + 7) & ~size_t{7});
    Elf64_Phdr code{};
    code.p_type = PT_LOAD;
    code.p_flags = PF_R | PF_X;
    code.p_vaddr = code.p_paddr = kSliceBase;
    code.p_filesz = code.p_memsz = code_end_;
    code.p_align = kSliceBase;
    Elf64_Ehdr file{};
    std::memcpy(file.e_ident, ELFMAG, SELFMAG);
    file.e_ident[EI_CLASS] = ELFCLASS64;
    file.e_ident[EI_DATA] = ELFDATA2LSB;
    file.e_ident[EI_VERSION] = EV_CURRENT;
    file.e_ident[EI_OSABI] = cubin_.abi();
    file.e_type = ET_EXEC;
    file.e_machine = kCubinMachine;
    file.e_version = EV_CURRENT;
    file.e_flags = cubin_.flags();
    file.e_phoff = sizeof(file);
    file.e_shoff = out_.size();
    file.e_ehsize = sizeof(file);
    file.e_phentsize = sizeof(code);
    file.e_phnum = 1;
    file.e_shentsize = sizeof(Elf64_Shdr);
    file.e_shnum = static_cast<Elf64_Half>(sections_.size());
    file.e_shstrndx = static_cast<Elf64_Half>(sections_.size() - 1);
    for (const Elf64_Shdr& section : sections_) AppendValue(out_, section);
    std::memcpy(out_.data(), &file, sizeof(file));
    std::memcpy(out_.data() + sizeof(file), &code, sizeof(code));
  }

  const CubinReader& cubin_;
  std::string out_;
  std::string names_ = std::string(1, '\0');
  std::vector<Elf64_Shdr> sections_;
  std::map<uint32_t, Placed> placed_;  // by the section in the cubin
  size_t symbol_table_ = 0;
  uint64_t code_end_ = 0;
};

}  // namespace

std::optional<MadeCubinSlice> WriteCubinSlice(std::span<const std::byte> cubin,
                                              const std::set<std::string>& wanted) {
  const auto reader = CubinReader::Open(cubin);
  if (!reader) return std::nullopt;
  return CubinSliceWriter(*reader).Write(wanted);
}

}  // namespace xpu
