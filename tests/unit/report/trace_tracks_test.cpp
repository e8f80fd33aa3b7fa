#include "report/views/timeline/trace_tracks.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

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
