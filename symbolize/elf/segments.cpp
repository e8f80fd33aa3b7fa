#include "symbolize/elf/segments.h"

#include <algorithm>
#include <tuple>

namespace xpu {
namespace {

// What the kernel maps files by.
constexpr uint64_t kPageBytes = 4096;

uint64_t PageOf(uint64_t offset) { return offset / kPageBytes; }

}  // namespace

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

std::optional<uint64_t> LinkAddressOfCodeMapping(std::span<const ElfSegment> segments,
                                                 uint64_t file_offset, uint64_t size_bytes) {
  // Two executable segments may share a page. The loader maps each from its first to its last page;
  // what a later mapping left of that has at least most of it.
  using Fit = std::tuple<bool, bool, uint64_t>;
  std::optional<uint64_t> found;
  Fit best;
  for (const ElfSegment& segment : segments) {
    if (!segment.executable) continue;
    const uint64_t begin = std::max(file_offset, segment.file_offset);
    const uint64_t end =
        std::min(file_offset + size_bytes, segment.file_offset + segment.file_bytes);
    if (begin >= end) continue;
    const Fit fit{PageOf(file_offset) == PageOf(segment.file_offset),
                  PageOf(file_offset + size_bytes - 1) == PageOf(end - 1), end - begin};
    if (found && fit <= best) continue;
    best = fit;
    found = segment.link_address + (file_offset - segment.file_offset);
  }
  return found;
}

std::optional<uint64_t> LinkDeltaOfCode(std::span<const ElfSegment> segments) {
  std::optional<uint64_t> delta;
  for (const ElfSegment& segment : segments) {
    if (!segment.executable) continue;
    const uint64_t one = segment.link_address - segment.file_offset;
    if (delta && *delta != one) return std::nullopt;
    delta = one;
  }
  return delta;
}

}  // namespace xpu
