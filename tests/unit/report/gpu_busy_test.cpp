#include "report/query/gpu_busy.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

// Kernels that run at the same time, on several streams of two GPUs that two processes use.
class GpuBusyTest : public testing::Test {
 protected:
  Kernel& Run(uint64_t instance, uint32_t device, uint32_t stream, uint64_t start, uint64_t end) {
    Kernel& kernel = builder_.AddKernel(instance, ++id_, start, end, "k");
    kernel.device_id = device;
    kernel.stream_id = stream;
    return kernel;
  }
  std::vector<GpuBusy> Busy() {
    analysis_ = std::make_unique<Analysis>(builder_.Build());
    return FindGpuBusy(*analysis_);
  }
  static std::vector<std::pair<uint64_t, uint64_t>> Spans(const GpuBusy& gpu) {
    std::vector<std::pair<uint64_t, uint64_t>> spans;
    for (const BusySpan& span : gpu.spans) spans.emplace_back(span.start_ns, span.end_ns);
    return spans;
  }

  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
  uint32_t id_ = 0;
};

using SpanList = std::vector<std::pair<uint64_t, uint64_t>>;

TEST_F(GpuBusyTest, WhatRunsAtOnceIsBusyOnce) {
  Run(1, 0, 7, 1'000, 2'000);
  Run(1, 0, 8, 1'500, 2'500);  // overlaps
  Run(1, 0, 9, 1'600, 1'700);  // within both
  Run(1, 0, 7, 2'500, 2'600);  // touches
  Run(1, 0, 7, 5'000, 5'400);
  const std::vector<GpuBusy> gpus = Busy();
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(Spans(gpus[0]), (SpanList{{1'000, 2'600}, {5'000, 5'400}}));
  EXPECT_EQ(gpus[0].busy_ns, 2'000u);
  EXPECT_EQ(gpus[0].sum_ns, 1'000u + 1'000 + 100 + 100 + 400);
  EXPECT_EQ(gpus[0].active_ns(), 4'400u);
}

TEST_F(GpuBusyTest, GpusAreApart) {
  Run(1, 0, 7, 1'000, 2'000);
  Run(1, 1, 7, 1'500, 4'000);
  const std::vector<GpuBusy> gpus = Busy();
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].gpu, 0u);
  EXPECT_EQ(gpus[0].busy_ns, 1'000u);
  EXPECT_EQ(gpus[1].gpu, 1u);
  EXPECT_EQ(gpus[1].busy_ns, 2'500u);
}

TEST_F(GpuBusyTest, ProcessesShareAGpu) {
  Run(1, 0, 7, 1'000, 2'000);
  Run(2, 0, 7, 1'900, 2'100);
  const std::vector<GpuBusy> gpus = Busy();
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].busy_ns, 1'100u);
  EXPECT_EQ(gpus[0].sum_ns, 1'200u);
}

TEST_F(GpuBusyTest, CopiesSetsAndReplaysAreWorkAndWaitsAreNot) {
  Memcpy& copy = builder_.events.memcpys.emplace_back();
  copy.instance = {1};
  copy.start_ns = 100;
  copy.end_ns = 200;
  Memset& set = builder_.events.memsets.emplace_back();
  set.instance = {1};
  set.start_ns = 300;
  set.end_ns = 310;
  GraphLaunch& graph = builder_.events.graph_launches.emplace_back();
  graph.instance = {1};
  graph.start_ns = 400;
  graph.end_ns = 450;
  Synchronization& wait = builder_.events.synchronizations.emplace_back();
  wait.instance = {1};
  wait.start_ns = 100;
  wait.end_ns = 9'000;
  const std::vector<GpuBusy> gpus = Busy();
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(Spans(gpus[0]), (SpanList{{100, 200}, {300, 310}, {400, 450}}));
}

TEST_F(GpuBusyTest, WhatHasNoTimeIsNotBusy) {
  Run(1, 0, 7, 0, 0);
  EXPECT_TRUE(Busy().empty());
}

std::vector<Pause> RandomPauses(std::mt19937& random, size_t count) {
  std::vector<Pause> pauses;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t start_ns = random() % 300;
    pauses.push_back({start_ns, start_ns + random() % 20, {}});
  }
  UnitePauses(pauses);
  return pauses;
}

// The result is that of united lists, which would take the room of all pauses for each GPU.
TEST(Uncounted, TimeOfBothListsCountsOnce) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Pause> of_all = RandomPauses(random, random() % 12);
    const std::vector<Pause> own = RandomPauses(random, random() % 12);
    const Uncounted uncounted(std::make_shared<const std::vector<Pause>>(of_all), own);
    std::vector<Pause> united = of_all;
    united.insert(united.end(), own.begin(), own.end());
    UnitePauses(united);
    for (uint64_t start_ns = 0; start_ns < 330; start_ns += 7) {
      for (uint64_t end_ns = start_ns; end_ns < 330; end_ns += 5) {
        const uint64_t paused_ns = PausedNs(united, start_ns, end_ns);
        ASSERT_EQ(uncounted.Ns(start_ns, end_ns), paused_ns) << start_ns << " " << end_ns;
        uint64_t found_ns = 0;
        for (uint64_t at_ns = start_ns; at_ns < end_ns;) {
          const Pause pause = uncounted.NextAt(at_ns);
          if (pause.start_ns >= end_ns) break;
          found_ns += std::min(pause.end_ns, end_ns) - std::max(pause.start_ns, at_ns);
          at_ns = pause.end_ns;
        }
        ASSERT_EQ(found_ns, paused_ns) << start_ns << " " << end_ns;
      }
    }
  }
}

}  // namespace
}  // namespace xpu
