#include "symbolize/elf/elf_image.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <elf.h>

#include "format/base/text.h"
#include "symbolize/elf/elf_bytes.h"

namespace xpu {
namespace {

static_assert(std::endian::native == std::endian::little);

// What follows bounds the work for a file that was made to cost much: real files have a build-id of
// 16 or 20 bytes, a note or two, some 40 sections, one table of symbols of each kind.
constexpr uint64_t kMaxNoteBytes = 65536;
constexpr uint64_t kMaxBuildIdBytes = 64;
constexpr uint64_t kMaxSections = 65536;
constexpr uint64_t kMaxSegments = 65536;
constexpr uint64_t kMaxSectionNameBytes = uint64_t{1} << 20;
constexpr uint64_t kMaxHeaderBytes = uint64_t{64} << 20;  // of .eh_frame_hdr, PT_DYNAMIC
constexpr uint64_t kMaxSymbols = uint64_t{1} << 24;

// Looks no further than `text`: a search for the end could be made to cost the whole table.
bool HasTextAt(std::span<const char> table, uint64_t offset, std::string_view text) {
  return offset < table.size() && table.size() - offset > text.size() &&
         std::memcmp(table.data() + offset, text.data(), text.size()) == 0 &&
         table[offset + text.size()] == 0;
}

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

ElfBinding BindingOf(unsigned char info) {
  switch (ELF64_ST_BIND(info)) {
    case STB_LOCAL:
      return ElfBinding::kLocal;
    case STB_WEAK:
      return ElfBinding::kWeak;
    default:
      return ElfBinding::kGlobal;
  }
}

// The addresses of executable segments, merged and sorted.
class CodeRanges {
 public:
  explicit CodeRanges(std::span<const ElfSegment> segments) {
    for (const ElfSegment& segment : segments) {
      if (!segment.executable || segment.memory_bytes == 0) continue;
      const uint64_t end = segment.link_address + segment.memory_bytes;
      ranges_.push_back({segment.link_address, end < segment.link_address ? ~uint64_t{0} : end});
    }
    UniteRanges(ranges_);
  }

  bool Contains(uint64_t address) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), address,
                         [](uint64_t value, const Range& range) { return value < range.begin; });
    return after != ranges_.begin() && address < std::prev(after)->end;
  }

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
  };
  std::vector<Range> ranges_;
};

}  // namespace

Result<ElfImage> ElfImage::Parse(std::span<const std::byte> bytes, std::string_view name) {
  ElfImage image;
  image.bytes_ = bytes;
  image.size_bytes_ = bytes.size();
  return Parse(std::move(image), name);
}

Result<ElfImage> ElfImage::Parse(const FileParts& file, std::string_view name) {
  ElfImage image;
  image.file_ = &file;
  image.size_bytes_ = file.size_bytes();
  return Parse(std::move(image), name);
}

Result<ElfImage> ElfImage::Parse(ElfImage image, std::string_view name) {
  const auto invalid = [&](const char* why) {
    return Error{ErrorKind::kInvalid, Format("{}: {}", name, why), {}};
  };
  Elf64_Ehdr header;
  if (!ReadAt(image.BytesAt(0, sizeof(header)), 0, header))
    return invalid("too short for an ELF file");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return invalid("not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return invalid("not a 64-bit little-endian ELF file");
  }
  image.entry_ = header.e_entry;
  image.type_ = header.e_type;
  image.machine_ = header.e_machine;

  uint64_t segment_count = header.e_phnum;
  uint64_t section_count = header.e_shnum;
  uint64_t names_index = header.e_shstrndx;
  Elf64_Shdr first;
  // Counts that do not fit into 16 bits are in the first section header.
  if (header.e_shoff != 0 && ReadAt(image.BytesAt(header.e_shoff, sizeof(first)), 0, first)) {
    if (section_count == 0) section_count = first.sh_size;
    if (segment_count == PN_XNUM) segment_count = first.sh_info;
    if (names_index == SHN_XINDEX) names_index = first.sh_link;
  }
  if (header.e_phentsize >= sizeof(Elf64_Phdr)) {
    image.ReadSegments(header.e_phoff, header.e_phentsize, segment_count);
  }
  if (header.e_shoff != 0 && header.e_shentsize >= sizeof(Elf64_Shdr)) {
    image.ReadSections(header.e_shoff, header.e_shentsize, section_count);
    image.ReadSectionNames(header.e_shentsize, names_index);
  }
  return image;
}

void ElfImage::ReadSegments(uint64_t table_offset, uint64_t entry_bytes, uint64_t count) {
  count = std::min(count, kMaxSegments);
  const auto table = BytesAt(table_offset, count * entry_bytes);
  count = std::min<uint64_t>(count, table.size() / entry_bytes);
  for (uint64_t i = 0; i < count; ++i) {
    Elf64_Phdr header;
    if (!ReadAt(table, i * entry_bytes, header)) return;
    if (header.p_type == PT_NOTE) ReadNotes(header.p_offset, header.p_filesz, header.p_align);
    if (header.p_type == PT_GNU_EH_FRAME) {
      eh_frame_header_ = {header.p_offset, std::min(header.p_filesz, kMaxHeaderBytes)};
      eh_frame_header_address_ = header.p_vaddr;
    }
    if (header.p_type == PT_DYNAMIC) {
      dynamic_ = {header.p_offset, std::min(header.p_filesz, kMaxHeaderBytes)};
    }
    if (header.p_type != PT_LOAD) continue;
    segments_.push_back({.file_offset = header.p_offset,
                         .file_bytes = header.p_filesz,
                         .link_address = header.p_vaddr,
                         .memory_bytes = header.p_memsz,
                         .executable = (header.p_flags & PF_X) != 0,
                         .flags = header.p_flags,
                         .alignment = header.p_align});
  }
}

void ElfImage::ReadSections(uint64_t table_offset, uint64_t entry_bytes, uint64_t count) {
  count = std::min(count, kMaxSections);
  const auto table = BytesAt(table_offset, count * entry_bytes);
  count = std::min<uint64_t>(count, table.size() / entry_bytes);
  section_headers_ = table.first(count * entry_bytes);
  section_header_bytes_ = entry_bytes;
  bool has_dynsym = false;
  for (uint64_t i = 0; i < count; ++i) {
    Elf64_Shdr header;
    if (!ReadAt(table, i * entry_bytes, header)) return;
    if (header.sh_type == SHT_NOTE && build_id_.empty()) {
      ReadNotes(header.sh_offset, header.sh_size, header.sh_addralign);
    }
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
    bool& has = header.sh_type == SHT_SYMTAB ? has_symtab_ : has_dynsym;
    Elf64_Shdr names;
    if (has) continue;
    if (header.sh_link >= count || !ReadAt(table, header.sh_link * entry_bytes, names)) continue;
    if (names.sh_type != SHT_STRTAB) continue;
    symbol_tables_.push_back(
        {.entries = {header.sh_offset, header.sh_size}, .names = {names.sh_offset, names.sh_size}});
    has = true;
  }
}

void ElfImage::ReadSectionNames(uint64_t entry_bytes, uint64_t index) {
  Elf64_Shdr names;
  if (index >= section_headers_.size() / entry_bytes) return;
  if (!ReadAt(section_headers_, index * entry_bytes, names) || names.sh_type != SHT_STRTAB) return;
  section_names_ =
      AsChars(BytesAt(names.sh_offset, std::min<uint64_t>(names.sh_size, kMaxSectionNameBytes)));
}

std::optional<ElfImage::Part> ElfImage::FindSection(std::string_view name,
                                                    ElfSection& section) const {
  Elf64_Shdr header;
  for (uint64_t at = 0; ReadAt(section_headers_, at, header); at += section_header_bytes_) {
    if (!HasTextAt(section_names_, header.sh_name, name)) continue;
    section.link_address = header.sh_addr;
    section.exists = true;
    section.is_compressed = (header.sh_flags & SHF_COMPRESSED) != 0;
    // Files of debug information have the headers of the others without content.
    if (header.sh_type == SHT_NOBITS) return std::nullopt;
    return Part{header.sh_offset, header.sh_size};
  }
  return std::nullopt;
}

ElfSection ElfImage::Section(std::string_view name) const {
  ElfSection section;
  if (const auto part = FindSection(name, section)) section.bytes = Read(*part);
  return section;
}

ElfSection ElfImage::SectionWithoutBytes(std::string_view name) const {
  ElfSection section;
  FindSection(name, section);
  return section;
}

ElfSection ElfImage::eh_frame_header() const {
  if (!eh_frame_header_) return {};
  return {
      .bytes = Read(*eh_frame_header_), .link_address = eh_frame_header_address_, .exists = true};
}

std::span<const std::byte> ElfImage::dynamic() const { return Read(dynamic_); }

std::vector<ElfMemorySection> ElfImage::MemorySections() const {
  constexpr size_t kMost = 256;
  constexpr size_t kMaxNameBytes = 64;
  std::vector<ElfMemorySection> sections;
  Elf64_Shdr header;
  for (uint64_t at = 0; ReadAt(section_headers_, at, header) && sections.size() < kMost;
       at += section_header_bytes_) {
    if ((header.sh_flags & SHF_ALLOC) == 0 || (header.sh_flags & SHF_TLS) != 0 ||
        header.sh_name >= section_names_.size()) {
      continue;
    }
    const std::string_view names(section_names_.data(), section_names_.size());
    const std::string_view rest = names.substr(header.sh_name, kMaxNameBytes);
    sections.push_back({.name = rest.substr(0, rest.find('\0')),
                        .executable = (header.sh_flags & SHF_EXECINSTR) != 0,
                        .link_address = header.sh_addr,
                        .file_offset = header.sh_offset,
                        .size_bytes = header.sh_size,
                        .alignment = header.sh_addralign});
  }
  return sections;
}

void ElfImage::ReadNotes(uint64_t file_offset, uint64_t bytes, uint64_t alignment) {
  const auto notes = BytesAt(file_offset, std::min(bytes, kMaxNoteBytes));
  const uint64_t step = alignment == 8 ? 8 : 4;
  uint64_t at = 0;
  Elf64_Nhdr note;
  while (build_id_.empty() && ReadAt(notes, at, note)) {
    const uint64_t name_at = at + sizeof(note);
    const uint64_t content_at = AlignUp(name_at + note.n_namesz, step);
    const uint64_t end = content_at + note.n_descsz;
    if (end > notes.size()) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= kMaxBuildIdBytes &&
        note.n_namesz == sizeof(ELF_NOTE_GNU) &&
        std::memcmp(notes.data() + name_at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
      const auto content = AsChars(notes.subspan(content_at, note.n_descsz));
      build_id_ = {content.data(), content.size()};
    }
    at = AlignUp(end, step);
  }
}

std::optional<uint64_t> ElfImage::LinkAddressOf(uint64_t file_offset) const {
  return xpu::LinkAddressOf(segments_, file_offset);
}

std::vector<uint64_t> ElfImage::LinkAddressesOf(std::span<const uint64_t> file_offsets) const {
  std::vector<uint64_t> addresses;
  addresses.reserve(file_offsets.size());
  for (const uint64_t offset : file_offsets) {
    if (const auto address = LinkAddressOf(offset)) addresses.push_back(*address);
  }
  return addresses;
}

std::optional<uint64_t> ElfImage::FileOffsetOf(uint64_t link_address) const {
  for (const ElfSegment& segment : segments_) {
    if (link_address >= segment.link_address &&
        link_address - segment.link_address < segment.file_bytes) {
      return segment.file_offset + (link_address - segment.link_address);
    }
  }
  return std::nullopt;
}

std::vector<ElfSymbol> ElfImage::CodeSymbols(std::span<const ElfSegment> segments) const {
  std::vector<ElfSymbol> symbols;
  const CodeRanges code(segments);
  // No more than the file has entries: growing would double the peak of memory.
  uint64_t most = 0;
  for (const Table& table : symbol_tables_) {
    most += CountBytesAt(table.entries.file_offset, table.entries.bytes) / sizeof(Elf64_Sym);
  }
  symbols.reserve(std::min(most, kMaxSymbols));
  for (const Table& table : symbol_tables_) {
    const auto entries = Read(table.entries);
    const auto names = AsChars(Read(table.names));
    Elf64_Sym symbol;
    for (uint64_t at = 0; ReadAt(entries, at, symbol); at += sizeof(symbol)) {
      if (symbols.size() == kMaxSymbols) return symbols;
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      const bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) continue;
      if (!is_function && type != STT_NOTYPE) continue;
      if (!code.Contains(symbol.st_value)) continue;
      const std::string_view name = TextAt(names, symbol.st_name);
      // Slices have functions without a name: the range is what they tell.
      const bool is_nameless = is_function && symbol.st_name == 0 && symbol.st_size > 0;
      if (name.empty() && !is_nameless) continue;
      symbols.push_back({.link_address = symbol.st_value,
                         .size_bytes = symbol.st_size,
                         .name = name,
                         .binding = BindingOf(symbol.st_info),
                         .is_function = is_function});
    }
  }
  return symbols;
}

std::span<const std::byte> ElfImage::BytesAtLinkAddress(uint64_t link_address,
                                                        uint64_t size_bytes) const {
  for (const ElfSegment& segment : segments_) {
    if (link_address < segment.link_address) continue;
    const uint64_t offset = link_address - segment.link_address;
    if (offset >= segment.file_bytes) continue;
    // A segment that begins after the end of all numbers has no bytes in the file.
    if (segment.file_offset + offset < offset) return {};
    return BytesAt(segment.file_offset + offset, std::min(size_bytes, segment.file_bytes - offset));
  }
  return {};
}

std::span<const std::byte> ElfImage::BytesAt(uint64_t file_offset, uint64_t size_bytes) const {
  return file_ != nullptr ? file_->Part(file_offset, size_bytes)
                          : Inside(bytes_, file_offset, size_bytes);
}

uint64_t ElfImage::CountBytesAt(uint64_t file_offset, uint64_t size_bytes) const {
  return file_offset >= size_bytes_ ? 0 : std::min(size_bytes, size_bytes_ - file_offset);
}

Result<ElfFile> ElfFile::Open(const std::string& path, std::string_view name) {
  // Captures name what was mapped, and that may be anything.
  XPU_ASSIGN_OR_RETURN(RegularFile file, OpenRegularFile(path, 0, std::string(name)));
  return Of(std::move(file), name.empty() ? path : name);
}

Result<ElfFile> ElfFile::Of(RegularFile file, std::string_view name) {
  XPU_ASSIGN_OR_RETURN(std::unique_ptr<FileParts> parts,
                       FileParts::Of(std::move(file), std::string(name)));
  XPU_ASSIGN_OR_RETURN(ElfImage image, ElfImage::Parse(*parts, name));
  return ElfFile(std::move(parts), std::move(image));
}

Result<std::string> ReadBuildId(const std::string& path) {
  XPU_ASSIGN_OR_RETURN(const ElfFile file, ElfFile::Open(path));
  return std::string(file.image().build_id());
}

}  // namespace xpu
