// The .debug_ sections of an ELF file.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "symbolize/elf/elf_image.h"

namespace xpu::dwarf {

enum class Section : uint8_t {
  kInfo,
  kAbbrev,
  kStr,
  kLineStr,
  kLine,
  kRanges,
  kRnglists,
  kAddr,
  kStrOffsets,
  kUnitIndex,  // .debug_cu_index of a .dwp
};
inline constexpr size_t kSectionCount = 10;

// Views: of a whole file, or of what of a .dwp belongs to one unit.
struct Sections {
  std::array<std::string_view, kSectionCount> bytes;

  std::string_view operator[](Section section) const { return bytes[static_cast<size_t>(section)]; }
  std::string_view& operator[](Section section) { return bytes[static_cast<size_t>(section)]; }
};

// Which names count: .debug_info or .debug_info.dwo.
enum class SectionNames : uint8_t { kMain, kSplit };

class SectionStore {
 public:
  // `image`'s bytes must outlive this. Compressed sections (SHF_COMPRESSED with zlib or Zstandard,
  // .zdebug_) are inflated; one that cannot be is empty.
  SectionStore(const ElfImage& image, SectionNames names);

  const Sections& sections() const { return sections_; }

 private:
  std::string_view Inflate(std::string_view bytes);
  std::string_view InflateGnu(std::string_view bytes);
  std::string_view Inflated(std::string_view compressed, uint64_t size_bytes, bool zstd);

  Sections sections_;
  std::vector<std::unique_ptr<char[]>> inflated_;
};

}  // namespace xpu::dwarf
