// The loadable segments of an ELF file: from offsets in the file to the addresses that the linker
// gave, and from what a process has mapped of the file to the segment that it is of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace xpu {

// A PT_LOAD program header.
struct ElfSegment {
  uint64_t file_offset = 0;
  uint64_t file_bytes = 0;
  uint64_t link_address = 0;
  uint64_t memory_bytes = 0;
  bool executable = false;
  uint32_t flags = 0;  // PF_
  uint64_t alignment = 0;
};

// The address that the linker gave to the byte at `file_offset`; executable segments first, because
// a page on the border of two segments is in both. Not for where a mapping begins, see below.
std::optional<uint64_t> LinkAddressOf(std::span<const ElfSegment> segments, uint64_t file_offset);

// The link address of the first byte of an executable mapping. LLD and mold start the code at any
// offset, and the kernel maps whole pages: such a mapping begins in the last bytes of the segment
// before, at an offset that does not tell which segment is mapped. Its protection and its whole
// range do. The result may lie below the segment. nullopt: no code of the file is in that range.
std::optional<uint64_t> LinkAddressOfCodeMapping(std::span<const ElfSegment> segments,
                                                 uint64_t file_offset, uint64_t size_bytes);

// Link address - offset in the file, where it is the same for all code; nullopt: it is not.
std::optional<uint64_t> LinkDeltaOfCode(std::span<const ElfSegment> segments);

// Sorts ranges, [begin, end), and joins those that overlap and, unless `keeps_touching`, touch.
template <typename Range>
void UniteRanges(std::vector<Range>& ranges, bool keeps_touching = false) {
  std::ranges::sort(ranges, {}, &Range::begin);
  size_t kept = 0;
  for (const Range& range : ranges) {
    Range* const last = kept > 0 ? &ranges[kept - 1] : nullptr;
    if (last && (range.begin < last->end || (range.begin == last->end && !keeps_touching))) {
      last->end = std::max(last->end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

}  // namespace xpu
