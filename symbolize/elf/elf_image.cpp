#include "symbolize/elf/elf_image.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include <elf.h>
#include <sys/stat.h>

#include "format/base/text.h"

namespace xpu {
namespace {

static_assert(std::endian::native == std::endian::little);

// Copies a T out of `bytes`; false when it does not lie inside.
template <typename T>
bool ReadAt(std::span<const std::byte> bytes, uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return true;
}

// The part of [offset, offset + size) that lies inside `bytes`.
std::span<const std::byte> Inside(std::span<const std::byte> bytes, uint64_t offset,
                                  uint64_t size) {
  if (offset >= bytes.size()) return {};
  return bytes.subspan(offset, std::min<uint64_t>(size, bytes.size() - offset));
}

std::span<const char> AsChars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The zero-terminated text at `offset`; empty when it has no end.
std::string_view TextAt(std::span<const char> table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::span<const char> rest = table.subspan(offset);
  const void* end = std::memchr(rest.data(), 0, rest.size());
  if (end == nullptr) return {};
  return {rest.data(), static_cast<size_t>(static_cast<const char*>(end) - rest.data())};
}

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

}  // namespace

Result<ElfImage> ElfImage::Parse(std::span<const std::byte> bytes, std::string_view name) {
  const auto invalid = [&](const char* why) {
    return Error{ErrorKind::kInvalid, Format("{}: {}", name, why), {}};
  };
  Elf64_Ehdr header;
  if (!ReadAt(bytes, 0, header)) return invalid("too short for an ELF file");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return invalid("not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return invalid("not a 64-bit little-endian ELF file");
  }
  ElfImage image;
  image.bytes_ = bytes;
  image.machine_ = header.e_machine;

  uint64_t segment_count = header.e_phnum;
  uint64_t section_count = header.e_shnum;
  uint64_t names_index = header.e_shstrndx;
  Elf64_Shdr first;
  // Counts that do not fit into 16 bits are in the first section header.
  if (header.e_shoff != 0 && ReadAt(bytes, header.e_shoff, first)) {
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
  const auto table = Inside(bytes_, table_offset, bytes_.size());
  count = std::min<uint64_t>(count, table.size() / entry_bytes);
  for (uint64_t i = 0; i < count; ++i) {
    Elf64_Phdr header;
    if (!ReadAt(table, i * entry_bytes, header)) return;
    if (header.p_type == PT_NOTE) ReadNotes(header.p_offset, header.p_filesz, header.p_align);
    if (header.p_type == PT_GNU_EH_FRAME) {
      eh_frame_header_ = {.bytes = Inside(bytes_, header.p_offset, header.p_filesz),
                          .link_address = header.p_vaddr,
                          .exists = true};
    }
    if (header.p_type != PT_LOAD) continue;
    segments_.push_back({.file_offset = header.p_offset,
                         .file_bytes = header.p_filesz,
                         .link_address = header.p_vaddr,
                         .memory_bytes = header.p_memsz,
                         .executable = (header.p_flags & PF_X) != 0});
  }
}

void ElfImage::ReadSections(uint64_t table_offset, uint64_t entry_bytes, uint64_t count) {
  const auto table = Inside(bytes_, table_offset, bytes_.size());
  count = std::min<uint64_t>(count, table.size() / entry_bytes);
  section_headers_ = table.first(count * entry_bytes);
  section_header_bytes_ = entry_bytes;
  for (uint64_t i = 0; i < count; ++i) {
    Elf64_Shdr header;
    if (!ReadAt(table, i * entry_bytes, header)) return;
    if (header.sh_type == SHT_NOTE && build_id_.empty()) {
      ReadNotes(header.sh_offset, header.sh_size, header.sh_addralign);
    }
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
    Elf64_Shdr names;
    if (header.sh_link >= count || !ReadAt(table, header.sh_link * entry_bytes, names)) continue;
    if (names.sh_type != SHT_STRTAB) continue;
    symbol_tables_.push_back({.file_offset = header.sh_offset,
                              .bytes = header.sh_size,
                              .names = AsChars(Inside(bytes_, names.sh_offset, names.sh_size))});
    has_symtab_ = has_symtab_ || header.sh_type == SHT_SYMTAB;
  }
}

void ElfImage::ReadSectionNames(uint64_t entry_bytes, uint64_t index) {
  Elf64_Shdr names;
  if (index >= section_headers_.size() / entry_bytes) return;
  if (!ReadAt(section_headers_, index * entry_bytes, names) || names.sh_type != SHT_STRTAB) return;
  section_names_ = AsChars(Inside(bytes_, names.sh_offset, names.sh_size));
}

ElfSection ElfImage::Section(std::string_view name) const {
  Elf64_Shdr header;
  for (uint64_t at = 0; ReadAt(section_headers_, at, header); at += section_header_bytes_) {
    if (!HasTextAt(section_names_, header.sh_name, name)) continue;
    ElfSection section;
    section.link_address = header.sh_addr;
    section.exists = true;
    section.is_compressed = (header.sh_flags & SHF_COMPRESSED) != 0;
    // Files of debug information have the headers of the others without content.
    if (header.sh_type != SHT_NOBITS) {
      section.bytes = Inside(bytes_, header.sh_offset, header.sh_size);
    }
    return section;
  }
  return {};
}

void ElfImage::ReadNotes(uint64_t file_offset, uint64_t bytes, uint64_t alignment) {
  const auto notes = Inside(bytes_, file_offset, bytes);
  const uint64_t step = alignment == 8 ? 8 : 4;
  uint64_t at = 0;
  Elf64_Nhdr note;
  while (build_id_.empty() && ReadAt(notes, at, note)) {
    const uint64_t name_at = at + sizeof(note);
    const uint64_t content_at = AlignUp(name_at + note.n_namesz, step);
    const uint64_t end = content_at + note.n_descsz;
    if (end > notes.size()) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
        std::memcmp(notes.data() + name_at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
      const auto content = AsChars(notes.subspan(content_at, note.n_descsz));
      build_id_ = {content.data(), content.size()};
    }
    at = AlignUp(end, step);
  }
}

std::optional<uint64_t> LinkAddressOf(std::span<const ElfSegment> segments, uint64_t file_offset) {
  std::optional<uint64_t> found;
  for (const ElfSegment& segment : segments) {
    if (file_offset < segment.file_offset ||
        file_offset - segment.file_offset >= segment.file_bytes) {
      continue;
    }
    const uint64_t address = segment.link_address + (file_offset - segment.file_offset);
    if (segment.executable) return address;
    if (!found) found = address;
  }
  return found;
}

std::optional<uint64_t> ElfImage::LinkAddressOf(uint64_t file_offset) const {
  return xpu::LinkAddressOf(segments_, file_offset);
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

std::vector<ElfSymbol> ElfImage::CodeSymbols() const {
  std::vector<ElfSymbol> symbols;
  const auto is_code = [&](uint64_t address) {
    return std::any_of(segments_.begin(), segments_.end(), [&](const ElfSegment& segment) {
      return segment.executable && address >= segment.link_address &&
             address - segment.link_address < segment.memory_bytes;
    });
  };
  for (const Table& table : symbol_tables_) {
    const auto entries = Inside(bytes_, table.file_offset, table.bytes);
    Elf64_Sym symbol;
    for (uint64_t at = 0; ReadAt(entries, at, symbol); at += sizeof(symbol)) {
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      const bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) continue;
      if (!is_function && type != STT_NOTYPE) continue;
      if (!is_code(symbol.st_value)) continue;
      const std::string_view name = TextAt(table.names, symbol.st_name);
      if (name.empty()) continue;
      symbols.push_back({.link_address = symbol.st_value,
                         .size_bytes = symbol.st_size,
                         .name = name,
                         .binding = BindingOf(symbol.st_info),
                         .is_function = is_function});
    }
  }
  return symbols;
}

std::span<const std::byte> ElfImage::BytesAt(uint64_t file_offset, uint64_t size_bytes) const {
  return Inside(bytes_, file_offset, size_bytes);
}

Result<ElfFile> ElfFile::Open(const std::string& path) {
  // Captures name what was mapped, and that may be anything: a device, whose opening acts, a pipe,
  // which blocks, a file of /proc, which has no size and may block too.
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return SystemError(Format("{}: open", path), errno);
  if (!S_ISREG(info.st_mode) || info.st_size == 0) {
    return Error{ErrorKind::kInvalid, Format("{}: not a regular file with content", path), {}};
  }
  XPU_ASSIGN_OR_RETURN(FileBytes bytes, FileBytes::Open(path));
  XPU_ASSIGN_OR_RETURN(ElfImage image, ElfImage::Parse(bytes.bytes(), path));
  return ElfFile(std::move(bytes), std::move(image));
}

Result<std::string> ReadBuildId(const std::string& path) {
  XPU_ASSIGN_OR_RETURN(const ElfFile file, ElfFile::Open(path));
  return std::string(file.image().build_id());
}

}  // namespace xpu
