#include <vector>

#include <gtest/gtest.h>

#include "report/query/statistics.h"

namespace xpu {
namespace {

using Numbers = std::vector<double>;

// t = 8.22 with 3 degrees of freedom, 2.45 with 4, 2.75 with 5 (critical: 3.18, 2.78, 2.57).
TEST(SignificanceTest, MeansOfAFewRuns) {
  EXPECT_TRUE(DifferByMeans(Numbers{100, 102, 101}, Numbers{110, 108, 111}));
  EXPECT_FALSE(DifferByMeans(Numbers{100, 104, 108}, Numbers{108, 112, 116}));
  EXPECT_TRUE(DifferByMeans(Numbers{100, 104, 108, 104}, Numbers{106, 110, 114, 112}));
}

TEST(SignificanceTest, FewerThanTwoRunsSayNothing) {
  EXPECT_FALSE(DifferByMeans(Numbers{100}, Numbers{200, 201}));
  EXPECT_FALSE(DifferByMeans(Numbers{}, Numbers{}));
}

TEST(SignificanceTest, RunsWithoutNoise) {
  EXPECT_TRUE(DifferByMeans(Numbers{5, 5}, Numbers{6, 6}));
  EXPECT_FALSE(DifferByMeans(Numbers{5, 5}, Numbers{5, 5}));
}

TEST(SignificanceTest, RanksOfManySteps) {
  Numbers a;
  Numbers shifted;
  Numbers same;
  for (int i = 0; i < 100; ++i) {
    a.push_back(100 + i % 10);
    shifted.push_back(103 + i % 10);
    same.push_back(100 + (i + 3) % 10);
  }
  EXPECT_TRUE(DifferByRanks(a, shifted));
  EXPECT_FALSE(DifferByRanks(a, same));
  // One step that takes very long says nothing of the others.
  same.back() = 1e9;
  EXPECT_FALSE(DifferByRanks(a, same));
  EXPECT_FALSE(DifferByRanks(Numbers(50, 7), Numbers(50, 7)));
  EXPECT_TRUE(DifferByRanks(Numbers(50, 7), Numbers(50, 8)));
}

}  // namespace
}  // namespace xpu
