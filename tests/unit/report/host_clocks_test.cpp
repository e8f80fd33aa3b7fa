#include <gtest/gtest.h>

#include "report/analysis/analysis.h"
#include "report/model/load.h"
#include "report/ranks/collectives.h"
#include "tests/unit/durations.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

using test::kMs;
using test::kSecond;
using test::kUs;
constexpr uint64_t kHostStart = 1000 * kSecond;

// A host's capture of one rank, with `count` all-reduces, one each 50 ms. Its wall clock is ahead
// by `ahead_ns`, and by `drift` more for each ns since the start.
Model Capture(uint32_t rank, int64_t ahead_ns, double drift, uint64_t count) {
  test::ModelBuilder builder;
  builder.Text("[lost]");
  builder.Stack({1});
  const auto local = [&](uint64_t ns) {
    const auto since = static_cast<double>(ns - kHostStart);
    return ns + static_cast<uint64_t>(ahead_ns + static_cast<int64_t>(drift * since));
  };
  const std::string name = "node" + std::to_string(rank);
  RecordingInfo& info = builder.events.recording_info.emplace_back();
  // The first host began first, by its wall clock too.
  info.start_ns = info.start_realtime_ns = local(kHostStart) - (rank == 0 ? 10 * kMs : 0);
  info.recorder_pid = 9;
  info.host_name = builder.Text(name);
  info.boot_id = builder.Text("boot of " + name);
  GpuProcess& gpu = builder.events.gpu_processes.emplace_back();
  gpu.time_ns = kHostStart;
  gpu.instance = {rank + 1};
  gpu.pid = 10;
  builder.Process(ProcessEventKind::kExec, kHostStart, 10, 10, "train");
  builder.Clock(rank + 1, 0, {local(kHostStart)});
  for (uint64_t i = 1; i <= count; ++i) {
    const uint64_t end_ns = kHostStart + i * 50 * kMs;
    // Every fourth one ends late on the second host: it did something else.
    const uint64_t late_ns = rank == 1 && i % 4 == 0 ? 3 * kMs : (i % 3) * kUs;
    builder.Call(rank + 1, static_cast<uint32_t>(i), test::kLaunchKernel, local(end_ns) - 2 * kMs,
                 local(end_ns) - 2 * kMs + kUs, 10);
    builder.AddKernel(rank + 1, static_cast<uint32_t>(i), local(end_ns) - kMs,
                      local(end_ns + late_ns), "ncclDevKernel_AllReduce_Sum_f32_RING_LL()");
  }
  builder.End(local(kHostStart + (count + 1) * 50 * kMs));
  Model model = builder.Build();
  model.path = name + ".xpu";
  return model;
}

std::vector<HostClock> Refined(std::vector<Model> captures) {
  Result<Model> merged = MergeCaptures(std::move(captures), RefineHostClocks);
  EXPECT_TRUE(merged.ok());
  return merged.value().host_clocks;
}

std::vector<Model> Captures(int64_t ahead_ns, double drift, uint64_t count) {
  std::vector<Model> captures;
  captures.push_back(Capture(0, 0, 0, count));
  captures.push_back(Capture(1, ahead_ns, drift, count));
  return captures;
}

TEST(HostClocks, OffsetAndDriftAreFound) {
  const std::vector<HostClock> clocks = Refined(Captures(700 * kUs, 20e-6, 100));
  ASSERT_EQ(clocks.size(), 2u);
  EXPECT_EQ(clocks[0].collectives, 0u);
  EXPECT_EQ(clocks[1].collectives, 100u);
  EXPECT_NEAR(clocks[1].drift, 20e-6, 2e-6);
  const double since = static_cast<double>(clocks[1].at_ns - kHostStart);
  EXPECT_NEAR(static_cast<double>(clocks[1].ahead_ns), 700e3 + since * 20e-6, 5e3);
  EXPECT_LT(clocks[1].residual_ns, 5 * kUs);
}

TEST(HostClocks, ShortRecordingsHaveNoDrift) {
  const std::vector<HostClock> clocks = Refined(Captures(-300 * int64_t{kUs}, 20e-6, 6));
  ASSERT_EQ(clocks.size(), 2u);
  EXPECT_EQ(clocks[1].drift, 0);
  EXPECT_NEAR(static_cast<double>(clocks[1].ahead_ns), -300e3, 10e3);
}

TEST(HostClocks, WithoutCollectivesTheWallClocksCount) {
  const std::vector<HostClock> clocks = Refined(Captures(kUs, 0, 0));
  ASSERT_EQ(clocks.size(), 2u);
  EXPECT_EQ(clocks[1].collectives, 0u);
  EXPECT_EQ(clocks[1].ahead_ns, 0);
}

// Long recordings are compared in parts; between these the clocks drift by more than collectives
// may be apart.
TEST(HostClocks, LongRecordingsAreSampled) {
  const std::vector<HostClock> clocks = Refined(Captures(700 * kUs, 20e-6, 40'000));
  ASSERT_EQ(clocks.size(), 2u);
  EXPECT_GT(clocks[1].collectives, 10'000u);
  EXPECT_LT(clocks[1].collectives, 30'000u);
  EXPECT_NEAR(clocks[1].drift, 20e-6, 1e-6);
  EXPECT_LT(clocks[1].residual_ns, 5 * kUs);
}

TEST(HostClocks, OneHostNeedsNoCorrection) {
  std::vector<Model> one;
  one.push_back(Capture(0, 0, 0, 10));
  EXPECT_TRUE(Refined(std::move(one)).empty());
}

}  // namespace
}  // namespace xpu
