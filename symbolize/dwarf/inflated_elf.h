// ELF files whose debug sections libelf cannot inflate.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "symbolize/elf/elf_image.h"

namespace xpu::dwarf {

// libelf 0.188 knows zlib only. A file of the debug sections of `image` alone, those compressed
// with Zstandard inflated; empty: there is nothing to inflate. A section that cannot be inflated is
// left out.
std::string InflateZstdSections(const ElfImage& image);

struct NamedBytes {
  std::string name;
  std::string_view bytes;
  uint64_t flags = 0;  // SHF_
};
// An ELF file of nothing but sections.
std::string WriteElfOf(std::span<const NamedBytes> sections);

}  // namespace xpu::dwarf
