#include "report/query/gpu_metrics.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "report/analysis/filter.h"
#include "report/views/summary/summary_hints.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

constexpr uint64_t kProgram = 1;  // instances
constexpr uint64_t kSampler = 2;
constexpr uint64_t kAhead = 1'000'000;  // the sampler's clock
constexpr uint64_t kSecond = 1'000'000'000;

// One GPU with kernels, its clocks, and a counter in percent and one of bytes.
class GpuMetricsTest : public testing::Test {
 protected:
  GpuMetricsTest() {
    AddDevice(1, "uuid-of-the-gpu!");
    Device& used = builder_.events.devices.emplace_back();
    used.instance = {kProgram};
    used.name = builder_.Text("NVIDIA H100");
    used.uuid = builder_.Text("uuid-of-the-gpu!");
    builder_.Clock(kSampler, kAhead, {1'000, 10 * kSecond});
    AddMetric(1, "tensor_active", "%", 10, 0);
    AddMetric(2, "dram_read", "bytes", 4'096'000, 0);
  }
  void AddDevice(uint32_t gpu, std::string_view uuid) {
    GpuDevice& device = builder_.events.gpu_devices.emplace_back();
    device.gpu = gpu;
    device.uuid = builder_.Text(uuid);
    device.name = builder_.Text("NVIDIA H100");
    device.power_limit = 700'000;
  }
  void AddMetric(uint32_t number, std::string_view name, std::string_view unit, uint32_t quantum,
                 uint64_t peak) {
    GpuMetric& metric = builder_.events.gpu_metrics.emplace_back();
    metric.metric = number;
    metric.gpu = 1;
    metric.name = builder_.Text(name);
    metric.unit = builder_.Text(unit);
    metric.quantum = quantum;
    metric.peak = peak;
  }
  // Times on CLOCK_MONOTONIC.
  void AddSample(uint64_t start_ns, uint64_t end_ns, uint64_t tensor, uint64_t dram) {
    GpuMetricSample& sample = builder_.events.gpu_metric_samples.emplace_back();
    sample.instance = {kSampler};
    sample.gpu = 1;
    sample.metric = 1;
    sample.start_ns = start_ns + kAhead;
    sample.end_ns = end_ns + kAhead;
    sample.value_0 = tensor;
    sample.value_1 = dram;
  }
  GpuState& AddState(uint64_t time_ns, uint64_t energy_mj, uint64_t reasons = 0) {
    GpuState& state = builder_.events.gpu_states.emplace_back();
    state.time_ns = time_ns;
    state.gpu = 1;
    state.sm_clock = 1'500;
    state.power = 300'000;
    state.energy = energy_mj;
    state.throttle_reasons = reasons;
    return state;
  }
  Analysis& Build(const FilterOptions& filter = {}) {
    analysis_ = std::make_unique<Analysis>(builder_.Build());
    analysis_->shown = *SelectPart(filter, *analysis_);
    return *analysis_;
  }
  std::vector<GpuCounterUse> Uses(const FilterOptions& filter = {}) {
    Analysis& analysis = Build(filter);
    return FindCounterUse(analysis, true, GpuNames(analysis, KernelNames::kFull));
  }

  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
};

TEST_F(GpuMetricsTest, MeansAreWeightedByTime) {
  AddSample(10'000, 20'000, 5'000, 10);  // 50 %
  AddSample(20'000, 50'000, 1'000, 50);  // 10 %, three times as long
  const std::vector<GpuCounterUse> uses = Uses();
  ASSERT_EQ(uses.size(), 1u);
  const GpuCounterUse& use = uses[0];
  EXPECT_EQ(use.gpu.number, 0u);
  ASSERT_EQ(use.metrics.size(), 2u);
  EXPECT_DOUBLE_EQ(use.sums[0].Average(), 20);
  EXPECT_DOUBLE_EQ(use.sums[0].most, 50);
  EXPECT_DOUBLE_EQ(use.PercentOfPeak(0, use.sums[0]), 20);
  EXPECT_EQ(use.sums[0].samples, 2u);
  EXPECT_EQ(use.sums[0].ns, 40'000u);
  EXPECT_EQ(use.metrics[1].unit, "GB/s");
  EXPECT_DOUBLE_EQ(use.sums[1].sum, 60 * 4096.0);
  EXPECT_DOUBLE_EQ(use.sums[1].Average(), 60 * 4096.0 / 40'000);
  EXPECT_LT(use.PercentOfPeak(1, use.sums[1]), 0);  // not known
}

TEST_F(GpuMetricsTest, LaterDefinitionsKnowThePeak) {
  AddMetric(2, "dram_read", "bytes", 4'096'000, 4'096'000'000'000);  // 4.096 bytes a picosecond
  AddSample(10'000, 20'000, 0, 5'000);                               // half of it
  const std::vector<GpuCounterUse> uses = Uses();
  ASSERT_EQ(uses.size(), 1u);
  ASSERT_EQ(uses[0].metrics.size(), 2u);
  EXPECT_DOUBLE_EQ(uses[0].PercentOfPeak(1, uses[0].sums[1]), 50);
}

TEST_F(GpuMetricsTest, ASampleIsOfTheKernelThatFillsIt) {
  builder_.AddKernel(kProgram, 1, 10'000, 40'000, "long");
  builder_.AddKernel(kProgram, 2, 40'000, 44'000, "short");  // four in a row
  builder_.AddKernel(kProgram, 3, 44'000, 48'000, "short");
  builder_.AddKernel(kProgram, 4, 48'100, 52'000, "short");
  AddSample(5'000, 15'000, 1'000, 0);   // the first half is idle
  AddSample(15'000, 25'000, 2'000, 0);  // long
  AddSample(25'000, 35'000, 4'000, 0);  // long
  AddSample(35'000, 45'000, 8'000, 0);  // half and half
  AddSample(41'000, 51'000, 6'000, 0);  // short, almost
  const std::vector<GpuCounterUse> uses = Uses();
  ASSERT_EQ(uses.size(), 1u);
  ASSERT_EQ(uses[0].kernels.size(), 2u);
  EXPECT_EQ(uses[0].kernels[0].name, "long");
  EXPECT_EQ(uses[0].kernels[0].samples, 2u);
  EXPECT_DOUBLE_EQ(uses[0].kernels[0].sums[0].Average(), 30);
  EXPECT_EQ(uses[0].kernels[1].name, "short");
  EXPECT_EQ(uses[0].kernels[1].samples, 1u);
  EXPECT_DOUBLE_EQ(uses[0].kernels[1].sums[0].Average(), 60);
}

TEST_F(GpuMetricsTest, WhatRunsAtOnceIsOfNoKernel) {
  builder_.AddKernel(kProgram, 1, 10'000, 40'000, "a");
  builder_.AddKernel(kProgram, 2, 12'000, 18'000, "b").stream_id = 9;
  AddSample(10'000, 20'000, 1'000, 0);
  AddSample(20'000, 30'000, 1'000, 0);
  const std::vector<GpuCounterUse> uses = Uses();
  ASSERT_EQ(uses[0].kernels.size(), 1u);
  EXPECT_EQ(uses[0].kernels[0].name, "a");
  EXPECT_EQ(uses[0].kernels[0].samples, 1u);
}

TEST_F(GpuMetricsTest, FiltersSelectKernelsTimesAndDevices) {
  builder_.AddKernel(kProgram, 1, 10'000, 20'000, "a");
  builder_.AddKernel(kProgram, 2, 20'000, 30'000, "b");
  AddSample(10'000, 20'000, 1'000, 0);
  AddSample(20'000, 30'000, 3'000, 0);
  FilterOptions filter;
  filter.kernel = "b";
  const std::vector<GpuCounterUse> uses = Uses(filter);
  ASSERT_EQ(uses[0].kernels.size(), 1u);
  EXPECT_EQ(uses[0].kernels[0].name, "b");
  EXPECT_EQ(uses[0].sums[0].samples, 2u);  // a kernel has no share in the whole

  FilterOptions other;
  other.devices = {1};
  analysis_->shown = *SelectPart(other, *analysis_);
  EXPECT_TRUE(analysis_->GpuMetricSamples().empty());
}

TEST_F(GpuMetricsTest, DamagedSamplesChangeNothing) {
  AddSample(20'000, 10'000, 1'000, 0);  // ends before it starts
  GpuMetricSample& unknown = builder_.events.gpu_metric_samples.emplace_back();
  unknown.gpu = 7;
  unknown.metric = 0xffffffff;
  GpuMetricSample& before = builder_.events.gpu_metric_samples.emplace_back();
  before.instance = {kSampler};
  before.gpu = 1;
  before.metric = 0;
  before.end_ns = ~uint64_t{0};
  AddMetric(9, "after a gap", "%", 10, 0);
  AddSample(30'000, 40'000, 1'000, 0);
  const std::vector<GpuCounterUse> uses = Uses();
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].metrics.size(), 2u);
  EXPECT_EQ(uses[0].sums[0].samples, 1u);
}

TEST_F(GpuMetricsTest, EnergyIsThatOfTheCounter) {
  AddState(1 * kSecond, 5'000'000);
  AddState(1 * kSecond + kSecond / 2, 5'100'000);
  AddState(2 * kSecond, 5'250'000);
  const std::vector<GpuConditions> all = FindGpuConditions(Build());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_DOUBLE_EQ(all[0].energy_j, 250);
  EXPECT_DOUBLE_EQ(all[0].power, 250);
  EXPECT_DOUBLE_EQ(all[0].power_peak, 300);
  EXPECT_DOUBLE_EQ(all[0].sm_clock, 1'500);
  EXPECT_EQ(all[0].duration_ns(), kSecond);
}

TEST_F(GpuMetricsTest, ReasonsLastUntilTheNextSampleButNotOverAPause) {
  AddState(1'000'000'000, 0, 0x4);
  AddState(1'100'000'000, 0, 0x4 | 0x20);
  AddState(1'200'000'000, 0, 0x1);
  AddState(9'000'000'000, 0).power_capped = 150'000'000;  // after a pause
  AddState(9'100'000'000, 0).power_capped = 150'000'000;
  const std::vector<GpuConditions> all = FindGpuConditions(Build());
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].throttled.size(), 4u);
  EXPECT_EQ(all[0].throttled[0].reason, "power limit (driver's counter)");
  EXPECT_EQ(all[0].throttled[0].ns, 150'000'000u);
  EXPECT_EQ(all[0].throttled[1].reason, "power limit (software)");
  EXPECT_EQ(all[0].throttled[1].ns, 200'000'000u);
  EXPECT_EQ(all[0].throttled[2].reason, "temperature (software)");
  EXPECT_EQ(all[0].throttled[2].ns, 100'000'000u);
  EXPECT_TRUE(all[0].throttled[3].is_idle);
  EXPECT_EQ(all[0].throttled[3].ns, 100'000'000u);
}

TEST_F(GpuMetricsTest, GpusThatAreNotUsedAreLeftOutIfAnyIs) {
  AddDevice(2, "uuid-of-another!");
  AddState(1 * kSecond, 0);
  AddState(2 * kSecond, 0).gpu = 2;
  EXPECT_EQ(FindGpuConditions(Build()).size(), 1u);
  EXPECT_EQ(MeasuredGpus(*analysis_).size(), 2u);
}

TEST_F(GpuMetricsTest, HintsNameWhatLimits) {
  AddMetric(2, "dram_read", "bytes", 4'096'000, 4'096'000'000'000);
  for (uint32_t i = 0; i < 30; ++i) {
    const uint64_t start_ns = 100'000 + i * 10'000;
    builder_.AddKernel(kProgram, i + 1, start_ns, start_ns + 10'000, "softmax_kernel");
    AddSample(start_ns, start_ns + 10'000, 0, 8'500);
  }
  AddState(1 * kSecond, 0, 0x4);
  AddState(1 * kSecond + 120'000'000, 0, 0);
  AddState(2 * kSecond, 0, 0);
  GpuFault& fault = builder_.events.gpu_faults.emplace_back();
  fault.gpu = 1;
  fault.kind = 8;
  fault.code = 79;
  const Analysis& analysis = Build();
  const std::optional<Hint> xid = FindXidHint(analysis);
  ASSERT_TRUE(xid);
  EXPECT_NE(xid->what.find("Xid 79 for GPU 0"), std::string::npos) << xid->what;
  const std::vector<Hint> hints = FindGpuHints(analysis);
  ASSERT_EQ(hints.size(), 2u);
  EXPECT_NE(hints[0].what.find("GPU 0 was power-capped for 12 % of the time"), std::string::npos)
      << hints[0].what;
  EXPECT_NE(hints[1].what.find("DRAM at 85 % of its peak while `softmax_kernel` ran: memory-bound"),
            std::string::npos)
      << hints[1].what;
}

}  // namespace
}  // namespace xpu
