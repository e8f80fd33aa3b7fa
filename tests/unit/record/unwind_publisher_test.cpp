#include "record/unwind/unwind_publisher.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

// As a program that maps code all the time has its list published: the ranges that rest and the one
// in use never take all there are.
TEST(MappingRanges, TheLargestListIsPublishedWithoutEnd) {
  constexpr uint32_t kLargest = 65536;
  MappingRanges ranges;
  uint32_t in_use = ranges.Take(kLargest, 0);
  for (uint64_t i = 1; i < 100; ++i) {
    const uint64_t now_ns = i * PublishIntervalNs(kLargest);
    const uint32_t next = ranges.Take(kLargest, now_ns);
    ASSERT_NE(next, MappingRanges::kNone) << i;
    ranges.GiveBack(in_use, kLargest, now_ns);
    in_use = next;
  }
}

TEST(MappingRanges, AFreedRangeRestsBeforeItIsReused) {
  MappingRanges ranges;
  const uint32_t first = ranges.Take(10, 0);
  EXPECT_EQ(ranges.Take(17, 0), first + 16);
  ranges.GiveBack(first, 10, 5);
  EXPECT_EQ(ranges.Take(16, 5 + MappingRanges::kRestNs - 1), first + 48);
  EXPECT_EQ(ranges.Take(16, 5 + MappingRanges::kRestNs), first);
}

TEST(MappingRanges, ReportsWhenAllAreTaken) {
  MappingRanges ranges;
  EXPECT_EQ(ranges.Take(XPU_MAX_MAPPINGS / 2 + 1, 0), 0u);
  EXPECT_EQ(ranges.Take(1, 0), MappingRanges::kNone);
}

}  // namespace
}  // namespace xpu
