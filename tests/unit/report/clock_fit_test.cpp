#include "report/model/clock_fit.h"

#include <random>

#include <gtest/gtest.h>

#include "tests/unit/durations.h"

namespace xpu {
namespace {

using test::kSecond;
constexpr uint64_t kRealtime = 1'700'000'000 * kSecond;

ClockPair Pair(uint64_t monotonic_ns, uint64_t clock_ns, uint64_t window_ns = 200) {
  return {.instance = {1},
          .clock = ClockKind::kCupti,
          .before_ns = monotonic_ns - window_ns / 2,
          .clock_ns = clock_ns,
          .after_ns = monotonic_ns - window_ns / 2 + window_ns};
}

TEST(ClockFit, NoPairChangesNothing) {
  const ClockFit fit({});
  EXPECT_EQ(fit.ToMonotonic(12345), 12345u);
  EXPECT_EQ(fit.pairs_used(), 0u);
}

TEST(ClockFit, OnePairIsAnOffset) {
  const std::vector<ClockPair> pairs = {Pair(5 * kSecond, kRealtime)};
  const ClockFit fit(pairs);
  EXPECT_EQ(fit.ToMonotonic(kRealtime), 5 * kSecond);
  EXPECT_EQ(fit.ToMonotonic(kRealtime + 7), 5 * kSecond + 7);
  EXPECT_EQ(fit.ToMonotonic(kRealtime - 7), 5 * kSecond - 7);
  EXPECT_EQ(fit.ToMonotonic(0), 0u);  // before CLOCK_MONOTONIC began
  EXPECT_EQ(fit.uncertainty_ns(), 100u);
}

TEST(ClockFit, LinesBetweenPairs) {
  // The clock gains 100 us in the first second and nothing in the next.
  const std::vector<ClockPair> pairs = {Pair(2 * kSecond, kRealtime + kSecond + 100'000),
                                        Pair(1 * kSecond, kRealtime),
                                        Pair(3 * kSecond, kRealtime + 2 * kSecond + 100'000)};
  const ClockFit fit(pairs);
  EXPECT_EQ(fit.ToMonotonic(kRealtime), kSecond);
  EXPECT_EQ(fit.ToMonotonic(kRealtime + (kSecond + 100'000) / 2), kSecond + kSecond / 2);
  EXPECT_EQ(fit.ToMonotonic(kRealtime + kSecond + 100'000), 2 * kSecond);
  EXPECT_EQ(fit.ToMonotonic(kRealtime + kSecond + 100'000 + 5), 2 * kSecond + 5);
  EXPECT_EQ(fit.ToMonotonic(kRealtime + 3 * kSecond + 100'000), 4 * kSecond);
  EXPECT_EQ(fit.steps(), 0u);
}

TEST(ClockFit, AnInterruptedPairIsDiscarded) {
  std::vector<ClockPair> pairs;
  for (uint64_t i = 1; i <= 5; ++i) pairs.push_back(Pair(i * kSecond, kRealtime + i * kSecond));
  // The clock was read at the very start of a window of 80 us.
  pairs.push_back({.instance = {1},
                   .clock = ClockKind::kCupti,
                   .before_ns = 3 * kSecond + kSecond / 2,
                   .clock_ns = kRealtime + 3 * kSecond + kSecond / 2,
                   .after_ns = 3 * kSecond + kSecond / 2 + 80'000});
  const ClockFit fit(pairs);
  EXPECT_EQ(fit.pairs_used(), 5u);
  EXPECT_EQ(fit.pairs_discarded(), 1u);
  EXPECT_EQ(fit.ToMonotonic(kRealtime + 3 * kSecond + kSecond / 2), 3 * kSecond + kSecond / 2);
}

TEST(ClockFit, PairsThatMakeNoSenseAreDiscarded) {
  const std::vector<ClockPair> pairs = {
      {.instance = {1}, .clock = {}, .before_ns = 9, .clock_ns = 5, .after_ns = 8},
      Pair(kSecond, kRealtime)};
  const ClockFit fit(pairs);
  EXPECT_EQ(fit.pairs_used(), 1u);
  EXPECT_EQ(fit.ToMonotonic(kRealtime), kSecond);
}

TEST(ClockFit, AClockSetForward) {
  constexpr uint64_t kJump = 3600 * kSecond;
  const std::vector<ClockPair> pairs = {Pair(1 * kSecond, kRealtime + 1 * kSecond),
                                        Pair(2 * kSecond, kRealtime + 2 * kSecond),
                                        Pair(3 * kSecond, kRealtime + 3 * kSecond + kJump),
                                        Pair(4 * kSecond, kRealtime + 4 * kSecond + kJump)};
  const ClockFit fit(pairs);
  EXPECT_EQ(fit.steps(), 1u);
  EXPECT_EQ(fit.ToMonotonic(kRealtime + 2 * kSecond + 400'000'000), 2 * kSecond + 400'000'000);
  EXPECT_EQ(fit.ToMonotonic(kRealtime + 2 * kSecond + 600'000'000 + kJump),
            2 * kSecond + 600'000'000);
  EXPECT_EQ(fit.ToMonotonic(kRealtime + 5 * kSecond + kJump), 5 * kSecond);
  // With the time of the launch too, of work that waited long as well.
  for (const uint64_t launch_ns : {kSecond / 2, kSecond}) {
    EXPECT_EQ(fit.ToMonotonic(kRealtime + 2 * kSecond, launch_ns), 2 * kSecond);
    EXPECT_EQ(fit.ToMonotonic(kRealtime + 2 * kSecond + 600'000'000 + kJump, launch_ns),
              2 * kSecond + 600'000'000);
    EXPECT_EQ(fit.ToMonotonic(kRealtime + 5 * kSecond + kJump, launch_ns), 5 * kSecond);
  }
}

TEST(ClockFit, AClockSetBackIsResolvedByTheLaunch) {
  constexpr uint64_t kJump = 10 * kSecond;
  std::vector<ClockPair> pairs;
  for (uint64_t i = 1; i <= 20; ++i) pairs.push_back(Pair(i * kSecond, kRealtime + i * kSecond));
  for (uint64_t i = 21; i <= 40; ++i) {
    pairs.push_back(Pair(i * kSecond, kRealtime + i * kSecond - kJump));
  }
  const ClockFit fit(pairs);
  EXPECT_EQ(fit.steps(), 1u);
  // The clock said this twice: at 15 s and at 25 s.
  const uint64_t twice = kRealtime + 15 * kSecond;
  EXPECT_EQ(fit.ToMonotonic(twice, 14 * kSecond), 15 * kSecond);
  EXPECT_EQ(fit.ToMonotonic(twice, 15 * kSecond + 50'000), 15 * kSecond);  // within the error
  EXPECT_EQ(fit.ToMonotonic(twice, 20 * kSecond), 25 * kSecond);
  EXPECT_EQ(fit.ToMonotonic(twice), 15 * kSecond);
}

TEST(ClockFit, GrowsWithItsClock) {
  std::mt19937_64 random(1);
  std::vector<ClockPair> pairs;
  for (uint64_t i = 1; i <= 50; ++i) {
    pairs.push_back(Pair(i * kSecond, kRealtime + i * kSecond + random() % 5000));
  }
  const ClockFit fit(pairs);
  EXPECT_EQ(fit.steps(), 0u);
  uint64_t last = 0;
  for (uint64_t time = kRealtime; time < kRealtime + 52 * kSecond; time += 9'999'991) {
    const uint64_t monotonic = fit.ToMonotonic(time);
    ASSERT_GE(monotonic, last);
    last = monotonic;
  }
}

TEST(ClockFit, TheLongestLine) {
  constexpr uint64_t kEnd = uint64_t{0} - kSecond;
  const std::vector<ClockPair> pairs = {Pair(1000, 0), Pair(kEnd, kEnd)};
  const ClockFit fit(pairs);
  EXPECT_EQ(fit.steps(), 0u);
  EXPECT_EQ(fit.ToMonotonic(kEnd - kSecond), kEnd - kSecond);
}

TEST(ClockFit, AnyPairsAreSafe) {
  std::mt19937_64 random(2);
  std::vector<ClockPair> pairs;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t before = random();
    pairs.push_back({.instance = {1},
                     .clock = ClockKind::kCupti,
                     .before_ns = before,
                     .clock_ns = random(),
                     .after_ns = before + random() % 1000});
  }
  const ClockFit fit(pairs);
  EXPECT_LE(fit.steps(), 63u);
  EXPECT_EQ(fit.pairs_used() + fit.pairs_discarded(), 1000u);
  for (int i = 0; i < 1000; ++i) fit.ToMonotonic(random(), random());
}

TEST(Clocks, OneFitPerInstanceAndTheStartForOthers) {
  Model model;
  model.events.recording_info.push_back({.start_ns = 5,
                                         .start_realtime_ns = 1005,
                                         .recorder_version = {},
                                         .host_name = {},
                                         .kernel_release = {},
                                         .machine = {},
                                         .command_line = {},
                                         .settings = {},
                                         .working_directory = {},
                                         .boot_id = {}});
  model.events.clock_pairs.rows() = {Pair(kSecond, 2 * kSecond)};
  model.events.clock_pairs.push_back(Pair(kSecond, 3 * kSecond));
  model.events.clock_pairs.rows().back().instance = {2};
  const Clocks clocks(model);
  EXPECT_EQ(clocks.Of({1}).ToMonotonic(2 * kSecond), kSecond);
  EXPECT_EQ(clocks.Of({2}).ToMonotonic(3 * kSecond), kSecond);
  EXPECT_EQ(clocks.Of({3}).ToMonotonic(1010), 10u);
}

}  // namespace
}  // namespace xpu
