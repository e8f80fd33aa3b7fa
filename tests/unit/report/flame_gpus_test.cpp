#include <algorithm>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "report/query/call_tree_builder.h"
#include "report/views/flame_graph/flame_graph_strip.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

constexpr uint64_t kProgram = 1;  // instances
constexpr uint64_t kSampler = 2;
constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kPartNs = 10 * kMs;
constexpr uint64_t kStartNs = 100 * kMs;
constexpr uint64_t kEndNs = kStartNs + 240 * kPartNs;

// A GPU that is watched for 2.4 s, and others as wanted.
class FlameGpusTest : public testing::Test {
 protected:
  FlameGpusTest() {
    builder_.Process(ProcessEventKind::kExisting, kProgram, 10, 10, "app");
    builder_.Clock(kProgram, 0, {1, 10'000 * kMs});
    builder_.Clock(kSampler, 0, {1, 10'000 * kMs});
    builder_.Callback(kProgram, ApiDomain::kRuntime, test::kLaunchKernel, "cudaLaunchKernel");
    AddGpu(1, "uuid-of-the-gpu!");
  }
  void AddGpu(uint32_t number, const std::string& uuid) {
    GpuDevice& device = builder_.events.gpu_devices.emplace_back();
    device.gpu = number;
    device.uuid = builder_.Text(uuid);
    device.power_limit = 700'000;
    device.max_sm_clock = 1980;
    Device& used = builder_.events.devices.emplace_back();
    used.instance = {kProgram};
    used.device_id = number - 1;
    used.uuid = builder_.Text(uuid);
  }
  void AddState(uint64_t time_ns, uint32_t power_w, uint64_t reasons = 0, uint32_t gpu = 1) {
    GpuState& state = builder_.events.gpu_states.emplace_back();
    state.time_ns = time_ns;
    state.gpu = gpu;
    state.power = 1000 * power_w;
    state.sm_clock = 1500;
    state.throttle_reasons = reasons;
  }
  // From the start to the end; the second half at twice the power.
  void AddStates(uint64_t reasons = 0) {
    for (uint64_t at = kStartNs; at < kEndNs; at += 10 * kPartNs) {
      AddState(at, at < (kStartNs + kEndNs) / 2 ? 200 : 400, reasons);
    }
    AddState(kEndNs - 1, 400, reasons);
  }
  // Launched at the start.
  void AddKernel(uint64_t start_ns, uint64_t end_ns) {
    ++launches_;
    builder_.Call(kProgram, launches_, test::kLaunchKernel, kStartNs, kStartNs + 10, 10);
    builder_.Launch(kProgram, launches_, kStartNs, 10, 10, {});
    builder_.AddKernel(kProgram, launches_, start_ns, end_ns, "gemm");
  }
  const Analysis& Build() {
    analysis_ = std::make_unique<Analysis>(builder_.Build());
    return *analysis_;
  }
  FlameStrip Strip() {
    Build();
    const TimeSlices parts = PartsOfGpuTime(*analysis_);
    SlicedTimes sliced = SliceByParts(parts);
    BuildCallTree(*analysis_, {.mode = TreeMode::kGpu}, &sliced);
    return StripOfParts(*analysis_, parts, sliced);
  }
  static const StripLane* Find(const FlameStrip& strip, std::string_view name) {
    const auto found = std::find_if(strip.lanes.begin(), strip.lanes.end(),
                                    [&](const StripLane& lane) { return lane.name == name; });
    return found == strip.lanes.end() ? nullptr : &*found;
  }

  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
  uint32_t launches_ = 0;
};

TEST_F(FlameGpusTest, NothingIsKnownOfGpus) {
  AddKernel(kStartNs, kEndNs);
  EXPECT_TRUE(PartsOfGpuTime(Build()).empty());
  FlameStrip strip{.from_ns = kStartNs, .to_ns = kEndNs, .lanes = {}};
  AddGpuLanes(Build(), strip);
  EXPECT_TRUE(strip.lanes.empty());
}

TEST_F(FlameGpusTest, EqualPartsOfTheTime) {
  AddStates();
  const TimeSlices parts = PartsOfGpuTime(Build());
  ASSERT_EQ(parts.size(), 240u);
  EXPECT_EQ(parts.front().start_ns, kStartNs);
  EXPECT_GE(parts.back().end_ns, kEndNs - 1);
  for (size_t i = 0; i + 1 < parts.size(); ++i) EXPECT_EQ(parts[i].end_ns, parts[i + 1].start_ns);
}

TEST_F(FlameGpusTest, OnlyTheTimeOfTheRecording) {
  AddStates();
  builder_.events.recording_info.emplace_back().start_ns = kStartNs + kPartNs;
  builder_.events.recording_end.emplace_back().time_ns = kEndNs - kPartNs;
  const TimeSlices parts = PartsOfGpuTime(Build());
  ASSERT_FALSE(parts.empty());
  EXPECT_EQ(parts.front().start_ns, kStartNs + kPartNs);
  EXPECT_LT(parts.back().start_ns, kEndNs - kPartNs);
}

TEST_F(FlameGpusTest, PowerClockAndBusyTime) {
  AddStates();
  AddKernel(kStartNs + 60 * kPartNs, kStartNs + 120 * kPartNs);
  const FlameStrip strip = Strip();
  const StripLane* power = Find(strip, "GPU 0 power");
  ASSERT_NE(power, nullptr);
  EXPECT_EQ(power->unit, "W");
  EXPECT_EQ(power->top, 700);
  EXPECT_NEAR(power->values[10], 200, 0.1);
  EXPECT_NEAR(power->values[200], 400, 0.1);
  const StripLane* clock = Find(strip, "GPU 0 SM clock");
  ASSERT_NE(clock, nullptr);
  EXPECT_EQ(clock->top, 1980);
  EXPECT_NEAR(clock->values[100], 1500, 0.1);
  const StripLane* busy = Find(strip, "GPU 0 busy");
  ASSERT_NE(busy, nullptr);
  EXPECT_NEAR(busy->values[30], 0, 1e-6);
  EXPECT_NEAR(busy->values[90], 100, 1e-6);
  EXPECT_NEAR(busy->values[150], 0, 1e-6);
  EXPECT_EQ(Find(strip, "GPU 0 throttled"), nullptr);  // it never was
}

TEST_F(FlameGpusTest, WhatHeldTheClockDown) {
  AddStates(0x4 | 0x1);
  const FlameStrip strip = Strip();
  const StripLane* throttled = Find(strip, "GPU 0 throttled: power limit (software)");
  ASSERT_NE(throttled, nullptr);
  EXPECT_NEAR(throttled->values[100], 100, 1e-6);
}

TEST_F(FlameGpusTest, NothingToDoIsNoThrottling) {
  AddStates(0x1);
  for (const StripLane& lane : Strip().lanes) {
    EXPECT_EQ(lane.name.find("throttled"), std::string::npos);
  }
}

TEST_F(FlameGpusTest, CountersOfMemoryAreAddedUpInPercentOfThePeak) {
  AddStates();
  uint32_t number = 1;
  for (const char* name : {"dram_read", "dram_write"}) {
    GpuMetric& metric = builder_.events.gpu_metrics.emplace_back();
    metric.metric = number++;
    metric.gpu = 1;
    metric.name = builder_.Text(name);
    metric.unit = builder_.Text("bytes");
    metric.quantum = 1000;
    metric.peak = 1'000'000'000'000;  // 1000 bytes in a nanosecond
  }
  GpuMetricSample& sample = builder_.events.gpu_metric_samples.emplace_back();
  sample.instance = {kSampler};
  sample.gpu = 1;
  sample.metric = 1;
  sample.start_ns = kStartNs;
  sample.end_ns = kStartNs + 20 * kPartNs;
  sample.value_0 = 100 * 20 * kPartNs;  // a tenth
  sample.value_1 = 300 * 20 * kPartNs;
  const FlameStrip strip = Strip();
  const StripLane* memory = Find(strip, "GPU 0 DRAM");
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->unit, "%");
  EXPECT_NEAR(memory->values[10], 40, 0.5);
  EXPECT_NEAR(memory->values[100], 0, 1e-6);
}

// Not that of the launch, which may be long before.
TEST_F(FlameGpusTest, WorkIsInThePartsInWhichItRuns) {
  AddStates();
  AddKernel(kStartNs + 60 * kPartNs + kPartNs / 2, kStartNs + 63 * kPartNs);
  const FlameStrip strip = Strip();
  EXPECT_EQ(strip.what, "part");
  uint64_t sum = 0;
  uint64_t count = 0;
  for (const SlicedTimes::Part& part : strip.parts) {
    EXPECT_GE(part.slice, 60u);
    EXPECT_LE(part.slice, 63u);
    sum += part.ns;
    count += part.count;
  }
  EXPECT_EQ(sum, 2 * kPartNs + kPartNs / 2);
  EXPECT_EQ(count, 1u);
}

TEST_F(FlameGpusTest, FourGpusAndTheOthersCounted) {
  AddStates();
  for (uint32_t gpu = 2; gpu <= 6; ++gpu) {
    AddGpu(gpu, "uuid-of-another" + std::to_string(gpu));
    AddState(kStartNs, 100, 0, gpu);
  }
  AddKernel(kStartNs, kEndNs);
  const FlameStrip strip = Strip();
  EXPECT_NE(Find(strip, "GPU 3 power"), nullptr);
  EXPECT_EQ(Find(strip, "GPU 4 power"), nullptr);
  EXPECT_NE(strip.text.find("; 2 more GPUs are not shown"), std::string::npos) << strip.text;
}

TEST_F(FlameGpusTest, BelowStepsOverTheirTime) {
  AddStates();
  FlameStrip strip{
      .from_ns = kStartNs + 120 * kPartNs, .to_ns = kEndNs, .lanes = {}, .what = "step"};
  AddGpuLanes(Build(), strip);
  const StripLane* power = Find(strip, "GPU 0 power");
  ASSERT_NE(power, nullptr);
  EXPECT_FALSE(power->first_slice);
  EXPECT_NEAR(power->values.front(), 400, 0.1);
  EXPECT_EQ(power->bars.front().start_ns, strip.from_ns);
}

TEST_F(FlameGpusTest, TimesOfDamagedCaptures) {
  AddState(1, 200);
  AddState(UINT64_MAX - 5, 200);
  EXPECT_TRUE(PartsOfGpuTime(Build()).empty());
  FlameStrip strip{.from_ns = 0, .to_ns = UINT64_MAX, .lanes = {}};
  AddGpuLanes(Build(), strip);
  EXPECT_TRUE(strip.lanes.empty());
}

}  // namespace
}  // namespace xpu
