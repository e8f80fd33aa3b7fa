#include "report/gpu/gpu_idle.h"

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

using test::Lines;

// One process, one GPU; times in ns, the GPU's clock is the CPU's.
class GpuIdleTest : public testing::Test {
 protected:
  GpuIdleTest() {
    builder_.Source(100);
    builder_.Process(ProcessEventKind::kExec, 0, 10, 10, "app");
    builder_.Clock(0xa, 0, {0});
    builder_.Callback(0xa, ApiDomain::kRuntime, 1, "cudaLaunchKernel");
    builder_.Callback(0xa, ApiDomain::kRuntime, 2, "cudaStreamSynchronize");
    GpuProcess& process = builder_.events.gpu_processes.emplace_back();
    process.instance = InstanceId{0xa};
    process.pid = process.namespace_pid = 10;
  }

  void Call(uint32_t correlation, uint32_t callback, uint64_t start_ns, uint64_t end_ns) {
    builder_.Call(0xa, correlation, callback, start_ns, end_ns, 10);
    builder_.Launch(0xa, correlation, start_ns, 10, 10, StackId{});
  }
  void Kernel(uint32_t correlation, uint64_t start_ns, uint64_t end_ns, uint32_t stream = 7) {
    builder_.AddKernel(0xa, correlation, start_ns, end_ns, "k").stream_id = stream;
  }
  void Wait(uint32_t correlation, uint64_t start_ns, uint64_t end_ns, uint32_t type) {
    Synchronization& wait = builder_.events.synchronizations.emplace_back();
    wait.instance = InstanceId{0xa};
    wait.correlation_id = correlation;
    wait.stream_id = 7;
    wait.type = type;
    wait.start_ns = start_ns;
    wait.end_ns = end_ns;
  }
  void Sample(uint64_t time_ns) { builder_.Sample(time_ns, 10, 10, StackId{}); }

  Lines Idle(bool device_tags = false, GroupBy by = GroupBy::kNothing) {
    Analysis analysis(builder_.Build());
    FoldedOptions options;
    options.merge.mode = MergeMode::kIdle;
    options.merge.device_tags = device_tags;
    options.merge.by = by;
    options.unit = TimeUnit::kNanoseconds;
    return test::Folded(analysis, options);
  }
  static Lines Totals(const std::vector<Statistics>& rows) {
    Lines totals;
    for (const Statistics& row : rows) totals[row.name] = row.total;
    return totals;
  }

  static constexpr uint32_t kStreamWait = 3;   // CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_
  static constexpr uint32_t kContextWait = 4;  // likewise

  test::ModelBuilder builder_;
};

TEST_F(GpuIdleTest, AGapIsDividedOverItsSamples) {
  Kernel(1, 1000, 2000);
  Kernel(2, 2500, 3001, 8);  // overlaps the next: no gap
  Kernel(3, 3000, 3500);
  Sample(1500);  // the GPU was busy
  Sample(2000);
  Sample(2300);
  Sample(2499);
  Sample(2500);
  EXPECT_EQ(Idle(), (Lines{{"app;[unknown];[GPU_Idle]", 500}}));
  Analysis analysis(builder_.Build());
}

TEST_F(GpuIdleTest, PartsAddUp) {
  Kernel(1, 1000, 2000);
  Kernel(2, 2500, 3000);
  for (const uint64_t at : {2100, 2200, 2300}) Sample(at);
  Analysis analysis(builder_.Build());
  const std::vector<IdlePart> parts = FindIdleParts(analysis);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].ns, 167u);
  EXPECT_EQ(parts[1].ns, 167u);
  EXPECT_EQ(parts[2].ns, 166u);
}

TEST_F(GpuIdleTest, WithoutSamples) {
  Kernel(1, 1000, 2000);
  Kernel(2, 2500, 3000);  // in a wait
  Wait(20, 1900, 2600, kStreamWait);
  Call(20, 2, 1890, 2610);
  Kernel(3, 3100, 3200);  // launched in the gap
  Call(3, 1, 3010, 3050);
  Kernel(4, 3300, 3400);  // launched before
  Call(4, 1, 3060, 3080);
  Kernel(5, 3500, 3600);  // nobody knows
  EXPECT_EQ(Idle(),
            (Lines{{"app;[unknown launch];cudaStreamSynchronize;[no CPU sample];[GPU_Idle]", 500},
                   {"app;[no CPU sample];[unknown launch];cudaLaunchKernel;[GPU_Idle]", 100},
                   {"[no CPU sample];[launched before];[GPU_Idle]", 100},
                   {"[no CPU sample];[unknown launch];[GPU_Idle]", 100}}));
}

TEST_F(GpuIdleTest, ByFunction) {
  Kernel(1, 1000, 2000);
  Kernel(2, 2500, 3000);
  Wait(20, 1900, 2600, kStreamWait);
  Call(20, 2, 1890, 2610);
  Kernel(3, 3100, 3200);
  Sample(3050);
  Analysis analysis(builder_.Build());
  EXPECT_EQ(Totals(IdleTimes(analysis)),
            (Lines{{"[no CPU sample] in cudaStreamSynchronize", 500}, {"[unknown]", 100}}));
}

class SeveralGpusTest : public GpuIdleTest {
 protected:
  SeveralGpusTest() {
    for (const uint32_t device : {0, 1}) {
      builder_.AddKernel(0xa, 1 + device, 1000, 2000, "k").device_id = device;
      builder_.AddKernel(0xa, 3 + device, 2100 + 100 * device, 3000, "k").device_id = device;
    }
  }
};

TEST_F(SeveralGpusTest, PathsNameThemWithDeviceTags) {
  EXPECT_EQ(Idle(true), (Lines{{"[no CPU sample];[unknown launch];[GPU0_Idle]", 100},
                               {"[no CPU sample];[unknown launch];[GPU1_Idle]", 200}}));
}

TEST_F(SeveralGpusTest, ByGpu) {
  EXPECT_EQ(Idle(false, GroupBy::kDevice),
            (Lines{{"GPU0;[no CPU sample];[unknown launch];[GPU_Idle]", 100},
                   {"GPU1;[no CPU sample];[unknown launch];[GPU_Idle]", 200}}));
}

TEST_F(SeveralGpusTest, RowsAreOfOneEach) {
  Analysis analysis(builder_.Build());
  EXPECT_EQ(Totals(IdleTimes(analysis)),
            (Lines{{"GPU 0: [no CPU sample] before an unknown launch", 100},
                   {"GPU 1: [no CPU sample] before an unknown launch", 200}}));
}

TEST_F(GpuIdleTest, WhatWaitsWaitFor) {
  Kernel(1, 1000, 2000);
  Kernel(2, 1500, 2400, 8);  // of another stream
  Wait(20, 1200, 2500, kStreamWait);
  Call(20, 2, 1190, 2510);
  Analysis analysis(builder_.Build());
  EXPECT_EQ(Totals(WaitTimes(analysis, GpuNames(analysis, KernelNames::kFull))),
            (Lines{{"cudaStreamSynchronize: k", 800},
                   {"cudaStreamSynchronize: [nothing running]", 500}}));
}

TEST_F(GpuIdleTest, WaitsForTheWholeContext) {
  Kernel(1, 1000, 2000);
  Kernel(2, 1500, 2400, 8);
  Wait(20, 1200, 2500, kContextWait);
  Analysis analysis(builder_.Build());
  EXPECT_EQ(
      Totals(WaitTimes(analysis, GpuNames(analysis, KernelNames::kFull))),
      (Lines{{"Synchronize context: k", 1200}, {"Synchronize context: [nothing running]", 100}}));
}

}  // namespace
}  // namespace xpu
