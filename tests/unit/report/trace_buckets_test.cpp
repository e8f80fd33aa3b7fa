#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "report/views/timeline/trace_counters.h"
#include "report/views/timeline/trace_tracks.h"

namespace xpu {
namespace {

using Points = std::vector<std::pair<uint64_t, double>>;

Points Drained(TraceBuckets& buckets) {
  Points points;
  buckets.Drain([&](uint64_t start_ns, double mean) { points.emplace_back(start_ns, mean); });
  return points;
}

TEST(TraceBuckets, WidthsAreRoundAndFew) {
  EXPECT_EQ(TraceBuckets(0, 0).width_ns(), 1'000u);
  EXPECT_EQ(TraceBuckets(0, 1'999'999).width_ns(), 1'000u);
  EXPECT_EQ(TraceBuckets(0, 2'000'000).width_ns(), 2'000u);
  EXPECT_EQ(TraceBuckets(5'000'000, 10'000'000).width_ns(), 5'000u);
  EXPECT_EQ(TraceBuckets(0, 60'000'000'000).width_ns(), 50'000'000u);
  EXPECT_EQ(TraceBuckets(0, ~uint64_t{0}).width_ns(), 10'000'000'000'000'000u);
}

TEST(TraceBuckets, SpreadOverWhatASpanCovers) {
  TraceBuckets buckets(10'000, 1'000'000);
  buckets.Add(10'500, 11'000, 500);    // half of the first
  buckets.Add(11'250, 14'500, 3'250);  // 3/4, two whole ones, half
  EXPECT_EQ(Drained(buckets),
            (Points{{10'000, 0.5}, {11'000, 0.75}, {12'000, 1.0}, {14'000, 0.5}, {15'000, 0.0}}));
  EXPECT_EQ(Drained(buckets), Points());
}

TEST(TraceBuckets, SpansAddUp) {
  TraceBuckets buckets(0, 1'000'000);
  for (int i = 0; i < 3; ++i) buckets.Add(1'000, 4'000, 3'000);
  buckets.Add(2'000, 3'000, 1'000);
  EXPECT_EQ(Drained(buckets), (Points{{1'000, 3.0}, {2'000, 4.0}, {3'000, 3.0}, {4'000, 0.0}}));
}

TEST(TraceBuckets, AmountsWithoutDurationAndAtTheEnd) {
  TraceBuckets buckets(0, 10'000);
  buckets.Add(500, 500, 2'000);
  buckets.Add(10'000, 10'000, 3'000);
  EXPECT_EQ(Drained(buckets), (Points{{0, 2.0}, {1'000, 0.0}, {10'000, 3.0}, {11'000, 0.0}}));
}

// However it may be damaged: nothing outside the range is touched.
TEST(TraceBuckets, OutsideOfTheRange) {
  TraceBuckets buckets(1'000, 3'000);
  buckets.Add(0, 500, 1'000);
  buckets.Add(5'000, ~uint64_t{0}, 1'000);
  for (const auto& [start_ns, mean] : Drained(buckets)) EXPECT_LE(start_ns, 4'000u);
}

TEST(TraceLanes, TheFirstThatIsFree) {
  TraceLanes lanes;
  EXPECT_EQ(lanes.Place(0, 10), 0u);
  EXPECT_EQ(lanes.Place(5, 30), 1u);
  EXPECT_EQ(lanes.Place(9, 12), 2u);
  EXPECT_EQ(lanes.Place(10, 20), 0u);  // touching is not overlapping
  EXPECT_EQ(lanes.Place(40, 50), 0u);
  EXPECT_EQ(lanes.Place(40, 50), 1u);
}

TEST(NestingLane, NestedOrOneAfterTheOther) {
  NestingLane lane;
  EXPECT_TRUE(lane.Place(0, 100));
  EXPECT_TRUE(lane.Place(10, 50));
  EXPECT_TRUE(lane.Place(20, 50));
  EXPECT_FALSE(lane.Place(40, 60));  // out of the two
  EXPECT_TRUE(lane.Place(50, 100));
  EXPECT_FALSE(lane.Place(90, 101));
  EXPECT_TRUE(lane.Place(100, 200));
}

}  // namespace
}  // namespace xpu
