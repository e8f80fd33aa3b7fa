#include "symbolize/dwarf/range_map.h"

#include <gtest/gtest.h>

namespace xpu::dwarf {
namespace {

std::vector<uint32_t> ValuesAt(const RangeMap& map, uint64_t end) {
  std::vector<uint32_t> values;
  for (uint64_t at = 0; at < end; ++at) values.push_back(map.Find(at));
  return values;
}

constexpr uint32_t kNo = RangeMap::kNone;

TEST(RangeMap, TheLargestValueCounts) {
  EXPECT_EQ(ValuesAt(RangeMap({{{1, 7}, 0}, {{2, 6}, 1}, {{3, 4}, 2}, {{5, 6}, 3}}), 8),
            (std::vector<uint32_t>{kNo, 0, 1, 2, 1, 3, 0, kNo}));
  // Not nested, given in another order, one inside a gap of its parent.
  EXPECT_EQ(ValuesAt(RangeMap({{{4, 8}, 1}, {{0, 2}, 0}, {{3, 5}, 0}, {{1, 4}, 2}}), 9),
            (std::vector<uint32_t>{0, 2, 2, 2, 1, 1, 1, 1, kNo}));
}

TEST(RangeMap, EmptyAndReversedRangesAreNone) {
  EXPECT_EQ(ValuesAt(RangeMap({{{2, 2}, 0}, {{3, 1}, 1}, {{4, 5}, 2}}), 6),
            (std::vector<uint32_t>{kNo, kNo, kNo, kNo, 2, kNo}));
  EXPECT_EQ(RangeMap().Find(0), kNo);
}

TEST(RangeMap, PiecesOfOneValueAreJoined) {
  const RangeMap map({{{0, 4}, 3}, {{4, 9}, 3}, {{2, 3}, 1}});
  ASSERT_EQ(map.pieces().size(), 1u);
  EXPECT_EQ(map.pieces()[0].range, (AddressRange{0, 9}));
  EXPECT_EQ(map.Find(UINT64_MAX), kNo);
}

}  // namespace
}  // namespace xpu::dwarf
