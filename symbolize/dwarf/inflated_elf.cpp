#include "symbolize/dwarf/inflated_elf.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <vector>

#include <elf.h>

#include "format/base/text.h"
#include "symbolize/elf/compressed_section.h"

namespace xpu::dwarf {
namespace {

constexpr std::string_view kNames[] = {
    ".debug_info",    ".debug_types",    ".debug_abbrev",      ".debug_addr",
    ".debug_aranges", ".debug_line",     ".debug_line_str",    ".debug_str",
    ".debug_ranges",  ".debug_rnglists", ".debug_str_offsets", ".gnu_debugaltlink"};

// DWARF shrinks to a third, rarely to a tenth.
constexpr InflateLimits kLimits{.bytes = uint64_t{1} << 34, .ratio = 2048};

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename T>
void Append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Not .debug_info alone: of split units so little stays in it that it does not get smaller.
bool HasCompressedSection(const ElfImage& image) {
  return std::any_of(std::begin(kNames), std::end(kNames), [&](std::string_view name) {
    return image.SectionWithoutBytes(name).is_compressed ||
           image.SectionWithoutBytes(Format("{}.dwo", name)).is_compressed;
  });
}

}  // namespace

std::string InflateZstdSections(const ElfImage& image) {
  // Most files need nothing of it, and reading a section reads all of it.
  if (!HasCompressedSection(image)) return {};
  std::vector<NamedBytes> sections;
  std::deque<std::string> inflated;
  for (const std::string_view plain : kNames) {
    for (const char* end : {"", ".dwo"}) {
      const std::string name = Format("{}{}", plain, end);
      const ElfSection section = image.Section(name);
      if (!section.exists) continue;
      if (CompressionOf(section) == Compression::kZstd) {
        inflated.push_back(InflateSection(section, kLimits).value_or(std::string()));
        sections.push_back({.name = name, .bytes = inflated.back()});
      } else {
        const uint64_t flags = section.is_compressed ? SHF_COMPRESSED : 0;
        sections.push_back({.name = name, .bytes = AsText(section.bytes), .flags = flags});
      }
    }
  }
  return inflated.empty() ? std::string() : WriteElfOf(sections);
}

std::string WriteElfOf(std::span<const NamedBytes> sections) {
  std::string names(1, '\0');
  std::string out(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> headers(1);
  const auto add = [&](std::string_view name, std::string_view bytes, uint32_t type,
                       uint64_t flags) {
    out.resize((out.size() + 7) & ~size_t{7});
    Elf64_Shdr header{};
    header.sh_name = static_cast<uint32_t>(names.size());
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_offset = out.size();
    header.sh_addralign = 1;
    names.append(name).push_back('\0');
    header.sh_size = type == SHT_STRTAB ? names.size() : bytes.size();
    out += type == SHT_STRTAB ? std::string_view(names) : bytes;
    headers.push_back(header);
  };
  for (const NamedBytes& section : sections) {
    add(section.name, section.bytes, SHT_PROGBITS, section.flags);
  }
  add(".shstrtab", {}, SHT_STRTAB, 0);
  out.resize((out.size() + 7) & ~size_t{7});
  Elf64_Ehdr ehdr{};
  std::memcpy(ehdr.e_ident, ELFMAG, SELFMAG);
  ehdr.e_ident[EI_CLASS] = ELFCLASS64;
  ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
  ehdr.e_ident[EI_VERSION] = EV_CURRENT;
  ehdr.e_type = ET_EXEC;
  ehdr.e_machine = EM_X86_64;
  ehdr.e_version = EV_CURRENT;
  ehdr.e_ehsize = sizeof(ehdr);
  ehdr.e_shoff = out.size();
  ehdr.e_shentsize = sizeof(Elf64_Shdr);
  ehdr.e_shnum = static_cast<uint16_t>(headers.size());
  ehdr.e_shstrndx = static_cast<uint16_t>(headers.size() - 1);
  std::memcpy(out.data(), &ehdr, sizeof(ehdr));
  for (const Elf64_Shdr& header : headers) Append(out, header);
  return out;
}

}  // namespace xpu::dwarf
