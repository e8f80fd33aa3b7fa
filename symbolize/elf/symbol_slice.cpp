#include "symbolize/elf/symbol_slice.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>

#include <elf.h>

namespace xpu {
namespace {

// Real files have some ten.
constexpr size_t kMaxSliceSegments = 256;
// Of all symbols and their names. Slices have some 10 KB; a file could be made to have a name of
// 64 KB at each of a million addresses.
constexpr size_t kMaxSymbolBytes = size_t{32} << 20;

constexpr std::string_view kBuildIdSection = ".note.gnu.build-id";
constexpr uint32_t kNoteAlignment = 4;
constexpr std::string_view kNoteOwner(ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU));  // with its zero

template <typename T>
void Append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void Align(std::string& out, size_t alignment) {
  out.resize((out.size() + alignment - 1) / alignment * alignment);
}

// A part of the table, [begin, end), that is kept as it is.
struct Run {
  size_t begin;
  size_t end;
};

// For each symbol that covers an address: it, and what begins between it and the last address that
// it covers. So that what lies between is not taken for its own, a range that goes on after the
// run's last symbol is cut where the next symbol begins.
std::vector<Run> FindRuns(const SymbolTable& table, std::span<const uint64_t> link_addresses) {
  const std::span<const ElfSymbol> symbols = table.symbols();
  std::vector<Run> runs;
  for (const uint64_t address : link_addresses) {
    const ElfSymbol* symbol = table.Find(address);
    if (symbol == nullptr) continue;
    const auto after = std::ranges::upper_bound(symbols, address, {}, &ElfSymbol::link_address);
    runs.push_back({static_cast<size_t>(symbol - symbols.data()),
                    static_cast<size_t>(after - symbols.begin())});
  }
  UniteRanges(runs, /*keeps_touching=*/true);
  return runs;
}

std::vector<ElfSymbol> KeptSymbols(const SymbolTable& table,
                                   std::span<const uint64_t> link_addresses) {
  const std::span<const ElfSymbol> symbols = table.symbols();
  std::vector<ElfSymbol> kept;
  size_t bytes = 0;
  for (const Run& run : FindRuns(table, link_addresses)) {
    const size_t kept_before = kept.size();
    const size_t bytes_before = bytes;
    const uint64_t limit = run.end < symbols.size() ? symbols[run.end].link_address
                                                    : std::numeric_limits<uint64_t>::max();
    for (size_t i = run.begin; i < run.end && bytes <= kMaxSymbolBytes; ++i) {
      kept.push_back(symbols[i]);
      kept.back().size_bytes = std::min(symbols[i].size_bytes, limit - symbols[i].link_address);
      bytes += sizeof(Elf64_Sym) + symbols[i].name.size() + 1;
    }
    if (bytes <= kMaxSymbolBytes) continue;
    // Half a run would give false names.
    kept.resize(kept_before);
    bytes = bytes_before;
  }
  return kept;
}

class Names {
 public:
  // `name` must outlive this.
  uint32_t Add(std::string_view name) {
    const auto [at, is_new] = offsets_.try_emplace(name, static_cast<uint32_t>(text_.size()));
    if (is_new) text_.append(name).push_back('\0');
    return at->second;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_ = std::string(1, '\0');
  std::unordered_map<std::string_view, uint32_t> offsets_{{"", 0}};
};

unsigned char BindingOf(const ElfSymbol& symbol) {
  switch (symbol.binding) {
    case ElfBinding::kLocal:
      return STB_LOCAL;
    case ElfBinding::kWeak:
      return STB_WEAK;
    case ElfBinding::kGlobal:
      break;
  }
  return STB_GLOBAL;
}

class Writer {
 public:
  explicit Writer(const ElfImage& file) : file_(file), segments_(file.segments()) {
    if (segments_.size() > kMaxSliceSegments) segments_.resize(kMaxSliceSegments);
    const size_t notes = file.build_id().empty() ? 0 : 1;
    out_.resize(sizeof(Elf64_Ehdr) + (segments_.size() + notes) * sizeof(Elf64_Phdr));
    sections_.emplace_back();
  }

  std::string Write(std::vector<ElfSymbol> symbols, std::span<const SliceSection> more) {
    const Elf64_Shdr note = AddNote();
    AddMemorySections();
    const size_t symbol_table = AddSymbols(std::move(symbols));
    for (const SliceSection& section : more) Add(section.name, SHT_PROGBITS, 1, section.bytes);
    // Of symbols and sections alike: one table.
    sections_[symbol_table].sh_link = static_cast<Elf64_Word>(sections_.size());
    names_.Add(".strtab");
    Add(".strtab", SHT_STRTAB, 1, names_.text());
    AddSectionHeaders(note);
    return std::move(out_);
  }

 private:
  Elf64_Shdr& Add(std::string_view name, uint32_t type, uint64_t alignment,
                  std::string_view bytes) {
    Align(out_, alignment);
    Elf64_Shdr header{};
    header.sh_name = names_.Add(name);
    header.sh_type = type;
    header.sh_offset = out_.size();
    header.sh_size = bytes.size();
    header.sh_addralign = alignment;
    out_.append(bytes);
    return sections_.emplace_back(header);
  }

  // A section with code and its number.
  struct Code {
    ElfMemorySection section;
    uint16_t index;
  };

  Elf64_Shdr AddNote() {
    const std::string_view build_id = file_.build_id();
    if (build_id.empty()) return {};
    std::string note;
    Append(note, Elf64_Nhdr{static_cast<Elf64_Word>(kNoteOwner.size()),
                            static_cast<Elf64_Word>(build_id.size()), NT_GNU_BUILD_ID});
    note.append(kNoteOwner).append(build_id);
    Align(note, kNoteAlignment);
    return Add(kBuildIdSection, SHT_NOTE, kNoteAlignment, note);
  }

  void AddWithoutContent(const ElfMemorySection& section) {
    Elf64_Shdr& header = Add(section.name, SHT_NOBITS, 1, {});
    header.sh_flags = SHF_ALLOC | (section.executable ? SHF_EXECINSTR : 0);
    header.sh_addr = section.link_address;
    header.sh_offset = section.file_offset;
    header.sh_size = section.size_bytes;
    if (!section.executable) return;
    code_.push_back({section, static_cast<uint16_t>(sections_.size() - 1)});
  }

  // The sections that the file has in memory: gdb takes the distance between a program and its
  // debug file from sections of the same name. Without content, as other debug files have them.
  void AddMemorySections() {
    for (const ElfMemorySection& section : file_.MemorySections()) {
      if (section.name == kBuildIdSection && sections_.size() > 1) {  // AddNote's
        sections_[1].sh_addr = section.link_address;
        sections_[1].sh_flags = SHF_ALLOC;
      } else {
        AddWithoutContent(section);
      }
    }
  }

  // Tools want a symbol to be in a section. Where the file has none, as files whose section headers
  // were cut off, that is the whole segment.
  uint16_t SectionOf(uint64_t address) {
    for (const Code& code : code_) {
      if (address - code.section.link_address < code.section.size_bytes) return code.index;
    }
    for (const ElfSegment& segment : segments_) {
      if (!segment.executable || address - segment.link_address >= segment.memory_bytes) continue;
      AddWithoutContent({.name = file_.has_section_names() ? ".code" : ".text",
                         .executable = true,
                         .link_address = segment.link_address,
                         .file_offset = segment.file_offset,
                         .size_bytes = segment.memory_bytes});
      return code_.back().index;
    }
    return SHN_UNDEF;
  }

  // Returns the number of the table's section.
  size_t AddSymbols(std::vector<ElfSymbol> symbols) {
    // ELF wants the local ones first.
    const auto globals = std::stable_partition(
        symbols.begin(), symbols.end(),
        [](const ElfSymbol& symbol) { return symbol.binding == ElfBinding::kLocal; });
    for (const ElfSymbol& symbol : symbols) SectionOf(symbol.link_address);  // all are there now
    std::string table;
    Append(table, Elf64_Sym{});
    for (const ElfSymbol& symbol : symbols) {
      Elf64_Sym entry{};
      entry.st_name = names_.Add(symbol.name);
      entry.st_info = static_cast<unsigned char>(
          ELF64_ST_INFO(BindingOf(symbol), symbol.is_function ? STT_FUNC : STT_NOTYPE));
      entry.st_shndx = SectionOf(symbol.link_address);
      entry.st_value = symbol.link_address;
      entry.st_size = symbol.size_bytes;
      Append(table, entry);
    }
    Elf64_Shdr& header = Add(".symtab", SHT_SYMTAB, 8, table);
    header.sh_info = static_cast<Elf64_Word>(globals - symbols.begin() + 1);
    header.sh_entsize = sizeof(Elf64_Sym);
    return sections_.size() - 1;
  }

  std::string ProgramHeaders(const Elf64_Shdr& note) const {
    std::string headers;
    for (const ElfSegment& segment : segments_) {
      Elf64_Phdr header{};
      header.p_type = PT_LOAD;
      header.p_flags = segment.flags;
      header.p_offset = segment.file_offset;
      header.p_vaddr = header.p_paddr = segment.link_address;
      header.p_filesz = segment.file_bytes;
      header.p_memsz = segment.memory_bytes;
      header.p_align = segment.alignment;
      Append(headers, header);
    }
    if (note.sh_type == SHT_NOTE) {
      Elf64_Phdr header{};
      header.p_type = PT_NOTE;
      header.p_flags = PF_R;
      header.p_offset = note.sh_offset;
      header.p_filesz = header.p_memsz = note.sh_size;
      header.p_align = kNoteAlignment;
      Append(headers, header);
    }
    return headers;
  }

  void AddSectionHeaders(const Elf64_Shdr& note) {
    Align(out_, 8);
    const std::string program_headers = ProgramHeaders(note);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = file_.type();
    header.e_machine = file_.machine();
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof(header);
    header.e_shoff = out_.size();
    header.e_ehsize = sizeof(header);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<Elf64_Half>(program_headers.size() / sizeof(Elf64_Phdr));
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(sections_.size());
    header.e_shstrndx = static_cast<Elf64_Half>(sections_.size() - 1);
    for (const Elf64_Shdr& section : sections_) Append(out_, section);
    std::memcpy(out_.data(), &header, sizeof(header));
    out_.replace(sizeof(header), program_headers.size(), program_headers);
  }

  const ElfImage& file_;
  std::vector<ElfSegment> segments_;
  std::string out_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Code> code_;
  Names names_;
};

}  // namespace

std::string WriteSymbolSlice(const ElfImage& file, const SymbolTable& symbols,
                             std::span<const uint64_t> link_addresses,
                             std::span<const SliceSection> more) {
  return Writer(file).Write(KeptSymbols(symbols, link_addresses), more);
}

}  // namespace xpu
