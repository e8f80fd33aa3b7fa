#include "report/base/time_bins.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace xpu {
namespace {

using Amounts = std::vector<std::pair<uint64_t, double>>;

// Returns the amounts by the start of their bin, without those of 0.
Amounts Drained(TimeBins& bins) {
  Amounts amounts;
  bins.Drain([&](size_t bin, double amount) {
    if (amount != 0) amounts.emplace_back(bins.StartOf(bin), amount);
  });
  return amounts;
}

TEST(TimeBins, WidthsAreRoundAndFew) {
  constexpr uint64_t kMost = 2000;
  EXPECT_EQ(TimeBins::Round(0, 0, kMost).width_ns(), 1'000u);
  EXPECT_EQ(TimeBins::Round(0, 1'999'999, kMost).width_ns(), 1'000u);
  EXPECT_EQ(TimeBins::Round(0, 2'000'000, kMost).width_ns(), 2'000u);
  EXPECT_EQ(TimeBins::Round(5'000'000, 10'000'000, kMost).width_ns(), 5'000u);
  EXPECT_EQ(TimeBins::Round(0, 60'000'000'000, kMost).width_ns(), 50'000'000u);
  EXPECT_EQ(TimeBins::Round(0, ~uint64_t{0}, kMost).width_ns(), 10'000'000'000'000'000u);
}

TEST(TimeBins, SpreadOverWhatASpanCovers) {
  TimeBins bins(10'000, 1'000, 100);
  EXPECT_TRUE(bins.empty());
  bins.Add(10'500, 11'000, 500);    // half of the first
  bins.Add(11'250, 14'500, 3'250);  // 3/4, two whole ones, half
  EXPECT_FALSE(bins.empty());
  EXPECT_EQ(
      Drained(bins),
      (Amounts{
          {10'000, 500.0}, {11'000, 750.0}, {12'000, 1000.0}, {13'000, 1000.0}, {14'000, 500.0}}));
  EXPECT_TRUE(bins.empty());
  EXPECT_EQ(Drained(bins), Amounts());
}

TEST(TimeBins, SpansAddUp) {
  TimeBins bins(0, 1'000, 100);
  for (int i = 0; i < 3; ++i) bins.Add(1'000, 4'000, 3'000);
  bins.Add(2'000, 3'000, 1'000);
  EXPECT_EQ(Drained(bins), (Amounts{{1'000, 3000.0}, {2'000, 4000.0}, {3'000, 3000.0}}));
}

TEST(TimeBins, AmountsWithoutDurationAndAtTheEnd) {
  TimeBins bins = TimeBins::Round(0, 10'000, 2000);
  bins.Add(500, 500, 2'000);
  bins.Add(10'000, 10'000, 3'000);
  EXPECT_EQ(Drained(bins), (Amounts{{0, 2000.0}, {10'000, 3000.0}}));
}

TEST(TimeBins, WhatLiesOutsideIsLeftOut) {
  TimeBins bins(1'000, 1'000, 2);
  bins.Add(0, 500, 1'000);
  bins.Add(0, 2'000, 1'000);
  bins.Add(2'500, 4'500, 1'000);
  bins.Add(3'000, 3'000, 1'000);
  bins.Add(5'000, ~uint64_t{0}, 1'000);
  EXPECT_EQ(Drained(bins), (Amounts{{1'000, 500.0}, {2'000, 250.0}}));
}

}  // namespace
}  // namespace xpu
