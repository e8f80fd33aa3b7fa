#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "report/base/text.h"

namespace xpu {
namespace {

using Values = std::vector<uint64_t>;

TEST(RoundToUnit, SumsToTheRoundedSum) {
  EXPECT_EQ(RoundToUnit(Values{400, 400, 400}, 1000), (Values{1, 0, 0}));     // 1.2 is 1
  EXPECT_EQ(RoundToUnit(Values{600, 600, 600}, 1000), (Values{1, 1, 0}));     // 1.8 is 2
  EXPECT_EQ(RoundToUnit(Values{250, 250}, 1000), (Values{1, 0}));             // 0.5 is 1
  EXPECT_EQ(RoundToUnit(Values{249, 250}, 1000), (Values{0, 0}));             // 0.499 is 0
  EXPECT_EQ(RoundToUnit(Values{1100, 2900, 3500}, 1000), (Values{1, 3, 4}));  // 7.5 is 8
  EXPECT_EQ(RoundToUnit(Values{}, 1000), Values{});
  EXPECT_EQ(RoundToUnit(Values{7, 0, 9}, 1), (Values{7, 0, 9}));
}

TEST(RoundToUnit, TheLargestRemaindersGetMore) {
  EXPECT_EQ(RoundToUnit(Values{1200, 1900, 1300, 1600}, 1000), (Values{1, 2, 1, 2}));
  EXPECT_EQ(RoundToUnit(Values{2000, 1999}, 1000), (Values{2, 2}));
}

TEST(RoundToUnit, HugeValues) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(RoundToUnit(Values{kMax, kMax}, kMax), (Values{1, 1}));
  EXPECT_EQ(RoundToUnit(Values{kMax, kMax, kMax}, 1), (Values{kMax, kMax, kMax}));
}

TEST(RoundToUnit, AnyValues) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const uint64_t unit = random() % 5000 + 1;
    Values values(random() % 50);
    for (uint64_t& value : values) value = random() % 20000;
    const Values rounded = RoundToUnit(values, unit);
    const uint64_t exact = std::accumulate(values.begin(), values.end(), uint64_t{0});
    EXPECT_EQ(std::accumulate(rounded.begin(), rounded.end(), uint64_t{0}),
              (2 * exact + unit) / (2 * unit));
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_GE(rounded[i], values[i] / unit);
      EXPECT_LE(rounded[i], values[i] / unit + 1);
    }
  }
}

}  // namespace
}  // namespace xpu
