#include "symbolize/elf/segments.h"

#include <vector>

#include <gtest/gtest.h>

namespace xpu {
namespace {

using Segments = std::vector<ElfSegment>;

constexpr uint64_t kPageBytes = 4096;

ElfSegment Segment(uint64_t file_offset, uint64_t bytes, uint64_t link_address, bool executable) {
  return {.file_offset = file_offset,
          .file_bytes = bytes,
          .link_address = link_address,
          .memory_bytes = bytes,
          .executable = executable};
}

// The bias of a mapping at 0 as the loader makes it: from the first to the last page of a segment.
std::optional<uint64_t> BiasOf(const Segments& segments, const ElfSegment& mapped) {
  const uint64_t begin = mapped.file_offset / kPageBytes * kPageBytes;
  const uint64_t end =
      (mapped.file_offset + mapped.file_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const auto link_address = LinkAddressOfCodeMapping(segments, begin, end - begin);
  if (!link_address) return std::nullopt;
  return begin - *link_address;
}

void ExpectEveryMappingIsItsSegments(const Segments& segments) {
  for (const ElfSegment& segment : segments) {
    if (!segment.executable) continue;
    EXPECT_EQ(BiasOf(segments, segment), segment.file_offset - segment.link_address)
        << std::hex << segment.file_offset;
  }
}

// LLD: the code begins in the page in which the read-only segment ends, one page further in memory.
TEST(Segments, CodeInThePageWhereAnotherSegmentEnds) {
  const Segments lld{Segment(0, 0xf4c, 0, false), Segment(0xf50, 0x840, 0x1f50, true),
                     Segment(0x1790, 0x1f0, 0x3790, false)};
  ExpectEveryMappingIsItsSegments(lld);
  EXPECT_EQ(LinkAddressOfCodeMapping(lld, 0, 0x2000), 0x1000u);
}

TEST(Segments, CodeOnPagesOfItsOwn) {
  ExpectEveryMappingIsItsSegments({Segment(0, 0x5f0, 0, false),
                                   Segment(0x1000, 0x2d5, 0x1000, true),
                                   Segment(0x2000, 0x100, 0x2000, false)});
}

TEST(Segments, CodeAndHeadersInOneSegment) {
  ExpectEveryMappingIsItsSegments(
      {Segment(0, 0x2063bcc, 0x400000, true), Segment(0x2064a60, 0x399110, 0x2664a60, false)});
}

// Two executable segments with different distances to their link addresses, in one page.
TEST(Segments, TwoExecutableSegmentsInOnePage) {
  ExpectEveryMappingIsItsSegments({Segment(0x200, 0x1d00, 0x1200, true),
                                   Segment(0x1f00, 0x5000, 0x3f00, true),
                                   Segment(0x6f00, 0x80, 0x9f00, true)});
}

// A later mapping took the first pages: what is left begins in the middle of the segment.
TEST(Segments, TheRestOfAMapping) {
  const Segments lld{Segment(0, 0xf4c, 0, false), Segment(0xf50, 0x10000, 0x1f50, true)};
  EXPECT_EQ(LinkAddressOfCodeMapping(lld, 0x3000, 0xe000), 0x4000u);
  EXPECT_EQ(LinkAddressOfCodeMapping(lld, 0x3000, 0x1000), 0x4000u);
}

TEST(Segments, MappingWithoutCodeOfTheFile) {
  const Segments lld{Segment(0, 0xf4c, 0, false), Segment(0xf50, 0x100, 0x1f50, true)};
  EXPECT_EQ(LinkAddressOfCodeMapping(lld, 0x2000, 0x1000), std::nullopt);
  EXPECT_EQ(LinkAddressOfCodeMapping({}, 0, 0x1000), std::nullopt);
}

}  // namespace
}  // namespace xpu
