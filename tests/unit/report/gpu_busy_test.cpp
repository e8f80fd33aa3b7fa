#include "report/query/gpu_busy.h"

#include <memory>
#include <utility>

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

}  // namespace
}  // namespace xpu
