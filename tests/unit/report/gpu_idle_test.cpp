#include "report/query/gpu_idle.h"

#include <gtest/gtest.h>

#include "format/base/text.h"
#include "report/analysis/filter.h"
#include "report/query/statistics.h"
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
    ViewOptions options;
    options.tree.mode = TreeMode::kIdle;
    options.tree.device_tags = device_tags;
    options.tree.by = by;
    options.unit = TimeUnit::kNanoseconds;
    return test::Folded(analysis, options);
  }
  static Lines Totals(const std::vector<Statistics>& rows) {
    Lines totals;
    for (const Statistics& row : rows) totals[row.name] = row.total;
    return totals;
  }

  // CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_
  static constexpr uint32_t kStreamWaitsForEvent = 2;
  static constexpr uint32_t kStreamWait = 3;
  static constexpr uint32_t kContextWait = 4;

  test::ModelBuilder builder_;
};

TEST_F(GpuIdleTest, EachMomentOfAGapGoesToTheNearestSample) {
  Kernel(1, 1000, 2000);
  Kernel(2, 2500, 3001, 8);  // overlaps the next: no gap
  Kernel(3, 3000, 3500);
  for (const uint64_t at : {1500, 2000, 2100, 2300, 2499}) Sample(at);
  EXPECT_EQ(Idle(), (Lines{{"app;[unknown];[GPU_Idle]", 500}}));
}

TEST_F(GpuIdleTest, PartsAddUpAndASampleStandsForItsPeriod) {
  Kernel(1, 1000, 2000);
  Kernel(2, 2500, 3000);
  for (const uint64_t at : {2100, 2200, 2310}) Sample(at);
  Analysis analysis(builder_.Build());
  CallPaths paths(analysis, {});
  const std::vector<IdleGap> gaps = FindAllGaps(analysis);
  ASSERT_EQ(gaps.size(), 1u);
  IdleParts idle_parts(analysis, paths);
  std::vector<uint64_t> parts;
  for (const IdlePart& part : idle_parts.Of(gaps.front())) parts.push_back(part.ns);
  // From 2050, 2150, 2255 to 2360, and the rest.
  EXPECT_EQ(parts, (std::vector<uint64_t>{100, 105, 105, 190}));
}

// Nine of ten gaps of a launch-bound program have no sample in them.
TEST_F(GpuIdleTest, GapsShorterThanThePeriodGoToTheSamplesAroundThem) {
  for (uint32_t i = 0; i < 100; ++i) {
    Kernel(i + 1, 1000 + 20 * i, 1000 + 20 * i + 5);
    Call(i + 1, 1, 1000 + 20 * i - 8, 1000 + 20 * i - 4);
  }
  for (uint64_t at = 950; at < 3100; at += 100) Sample(at);
  EXPECT_EQ(Idle(), (Lines{{"app;[unknown];[GPU_Idle]", 99 * 15}}));
}

class IdleThreadsTest : public GpuIdleTest {
 protected:
  IdleThreadsTest() {
    Function(kText, "work");
    Function(kText + 0x100, "blas_thread_server");
    Function(kText + 0x200, "load_data");
    builder_.Process(ProcessEventKind::kFork, 1, 20, 20, {}, 10, 10);
    builder_.Process(ProcessEventKind::kExec, 2, 20, 20, "loader");
    builder_.Process(ProcessEventKind::kExisting, 1, 30, 30, "stranger");
    Kernel(1, 1000, 2000);
    Kernel(2, 3000, 3500);
    Call(2, 1, 2990, 2995);
    for (uint64_t at = 2050; at < 3000; at += 100) {
      builder_.Sample(at, 10, 11, builder_.Stack({kText + 0x110}));
      builder_.Sample(at, 30, 30, StackId{});
    }
  }
  void Function(uint64_t address, std::string_view name) {
    for (const uint32_t pid : {10, 20}) {
      builder_.events.generated_symbols.push_back({.time_ns = 0,
                                                   .pid = pid,
                                                   .address = address,
                                                   .size_bytes = 0x100,
                                                   .name = builder_.Text(name)});
    }
  }

  static constexpr uint64_t kText = 0x10000;
};

TEST_F(IdleThreadsTest, TheThreadThatEndsTheGapIsResponsible) {
  for (uint64_t at = 2050; at < 3000; at += 100) {
    builder_.Sample(at, 10, 10, builder_.Stack({kText + 0x10}));
  }
  EXPECT_EQ(Idle(), (Lines{{"app;work;[GPU_Idle]", 1000}}));
}

TEST_F(IdleThreadsTest, OtherThreadsCountWhereItDidNotRunAndTheyDoNotSpin) {
  for (const uint64_t at : {2050, 2150}) {
    builder_.Sample(at, 10, 10, builder_.Stack({kText + 0x10}));
  }
  for (const uint64_t at : {2350, 2450, 2450, 2550}) {
    builder_.Sample(at, 20, 20, builder_.Stack({kText + 0x210}));
  }
  EXPECT_EQ(Idle(),
            (Lines{{"app;work;[GPU_Idle]", 200},
                   {"loader;load_data;[GPU_Idle]", 300},
                   {"app;[no CPU sample];[unknown launch];cudaLaunchKernel;[GPU_Idle]", 500}}));
}

TEST_F(IdleThreadsTest, WhatWasLaunchedBeforeTheGapWaitedInAQueue) {
  builder_.events.api_calls.back().start_ns = 1500;
  builder_.events.api_calls.back().end_ns = 1510;
  builder_.events.launch_stacks.back().time_ns = 1500;
  builder_.Sample(2500, 10, 10, builder_.Stack({kText + 0x10}));
  EXPECT_EQ(Idle(), (Lines{{"[launched before];[GPU_Idle]", 1000}}));
}

TEST_F(IdleThreadsTest, TheLongestPathWithHalfOfTheTime) {
  for (const uint64_t at : {2050, 2150, 2250}) {
    builder_.Sample(at, 10, 10, builder_.Stack({kText + 0x210, kText + 0x10}));
  }
  for (const uint64_t at : {2350, 2450, 2550, 2650, 2750}) {
    builder_.Sample(at, 10, 10, builder_.Stack({kText + 0x210}));
  }
  Analysis analysis(builder_.Build());
  CallPaths paths(analysis, {});
  IdlePaths idle_paths(analysis, paths);
  IdleParts parts(analysis, paths);
  const PathId most = idle_paths.MostOf(parts.Of(FindAllGaps(analysis).front()));
  EXPECT_EQ(FoldedText(analysis.frames, paths.tree().Path(most)), "app;load_data");
  EXPECT_FALSE(idle_paths.MostOf({}));
}

class IdlePartsOfTheCaptureTest : public IdleThreadsTest {
 protected:
  // "start-end tid cause", of each gap.
  std::vector<std::string> Gaps(const FilterOptions& filter) {
    Analysis analysis(builder_.Build());
    analysis.shown = SelectPart(filter, analysis).value();
    CallPaths paths(analysis, {});
    IdlePaths idle_paths(analysis, paths);
    IdleParts parts(analysis, paths);
    std::vector<std::string> texts;
    uint64_t sum_ns = 0;
    for (const IdleGap& gap : FindAllGaps(analysis)) {
      const std::vector<FrameId> path = paths.tree().Path(idle_paths.MostOf(parts.Of(gap)));
      texts.push_back(Format("{}-{} {} {}", gap.start_ns, gap.end_ns, OwnerOf(analysis, gap).tid,
                             FoldedText(analysis.frames, path)));
      sum_ns += gap.ns;
    }
    uint64_t idle_ns = 0;
    for (const GpuBusy& gpu : FindGpuBusy(analysis)) idle_ns += gpu.idle_ns();
    EXPECT_EQ(idle_ns, sum_ns);
    return texts;
  }
  static FilterOptions Time(uint64_t begin_ns, uint64_t end_ns) {
    FilterOptions filter;
    filter.time = {begin_ns, end_ns};
    return filter;
  }
  void SampleMainThread() {
    for (uint64_t at = 2050; at < 3000; at += 100) {
      builder_.Sample(at, 10, 10, builder_.Stack({kText + 0x10}));
    }
  }
  // With work in the middle of the gap that a filter takes out, launched in this time.
  std::vector<std::string> GapsAroundOtherWork(uint64_t call_start_ns, uint64_t call_end_ns) {
    SampleMainThread();
    builder_.AddKernel(0xa, 3, 2600, 2700, "other");
    Call(3, 1, call_start_ns, call_end_ns);
    FilterOptions filter;
    filter.kernel = "^k";
    return Gaps(filter);
  }
};

using Texts = std::vector<std::string>;

TEST_F(IdlePartsOfTheCaptureTest, WhatATimeRangeCutsOffAGap) {
  SampleMainThread();
  EXPECT_EQ(Gaps(Time(2300, 2700)), Texts{"2300-2700 10 app;work"});
}
TEST_F(IdlePartsOfTheCaptureTest, AGapThatATimeRangeEnters) {
  SampleMainThread();
  EXPECT_EQ(Gaps(Time(2300, 3100)), Texts{"2300-3000 10 app;work"});
}
TEST_F(IdlePartsOfTheCaptureTest, AGapThatATimeRangeLeaves) {
  SampleMainThread();
  EXPECT_EQ(Gaps(Time(1900, 2700)), Texts{"2000-2700 10 app;work"});
}
TEST_F(IdlePartsOfTheCaptureTest, BeforeTheFirstWorkIsNoGap) {
  EXPECT_EQ(Gaps(Time(100, 1500)), Texts{});
}
TEST_F(IdlePartsOfTheCaptureTest, ATimeRangeBeforeTheFirstWorkHasNoGap) {
  EXPECT_EQ(Gaps(Time(100, 900)), Texts{});
}
TEST_F(IdlePartsOfTheCaptureTest, ATimeRangeAfterTheLastWorkHasNoGap) {
  EXPECT_EQ(Gaps(Time(3600, 9000)), Texts{});
}

// A filter that leaves no CPU samples is about what is shown, not about what kept the GPU waiting.
TEST_F(IdlePartsOfTheCaptureTest, AFilterByGpuLeavesTheCauseOfIdleTime) {
  SampleMainThread();
  FilterOptions filter;
  filter.devices = {0};
  EXPECT_EQ(Gaps(filter), Texts{"2000-3000 10 app;work"});
}
TEST_F(IdlePartsOfTheCaptureTest, AFilterByKernelLeavesTheCauseOfIdleTime) {
  SampleMainThread();
  FilterOptions filter;
  filter.kernel = "k";
  EXPECT_EQ(Gaps(filter), Texts{"2000-3000 10 app;work"});
}

TEST_F(IdlePartsOfTheCaptureTest, AFilterByProcessLeavesWhatItWaitedFor) {
  for (const uint64_t at : {2150, 2250, 2350, 2450, 2550, 2650, 2750}) {
    builder_.Sample(at, 20, 20, builder_.Stack({kText + 0x210}));
  }
  FilterOptions filter;
  filter.pids = {10};
  EXPECT_EQ(Gaps(filter), Texts{"2000-3000 10 loader;load_data"});
}

// What it waits for is not in the range of the thread that waits.
TEST_F(IdlePartsOfTheCaptureTest, AFilterByRangeLeavesWhatItWaitedFor) {
  Call(1, 1, 950, 960);
  for (const auto& [time_ns, kind] :
       {std::pair(900, NvtxKind::kPush), std::pair(3'600, NvtxKind::kPop)}) {
    NvtxEvent& event = builder_.events.nvtx_events.emplace_back();
    event.instance = InstanceId{0xa};
    event.time_ns = time_ns;
    event.kind = kind;
    event.tid = 10;
    event.text = builder_.Text("step");
  }
  for (const uint64_t at : {2150, 2250, 2350, 2450, 2550, 2650, 2750}) {
    builder_.Sample(at, 20, 20, builder_.Stack({kText + 0x210}));
  }
  FilterOptions filter;
  filter.nvtx = "step";
  EXPECT_EQ(Gaps(filter), Texts{"2000-3000 10 loader;load_data"});
}

TEST_F(IdlePartsOfTheCaptureTest, AFilterLeavesTheWaitsOfTheThread) {
  Wait(20, 1900, 3100, kStreamWait);
  Call(20, 2, 1890, 3110);
  FilterOptions filter;
  filter.kernel = "k";
  EXPECT_EQ(Gaps(filter),
            Texts{"2000-3000 10 app;[unknown launch];cudaStreamSynchronize;[no CPU sample]"});
}

// Work that a filter took out ends a gap as well as other work does.
TEST_F(IdlePartsOfTheCaptureTest, AGapThatOtherWorkEndsIsOfItsThread) {
  EXPECT_EQ(GapsAroundOtherWork(2590, 2595),
            (Texts{"2000-2600 10 app;work", "2700-3000 10 app;work"}));
}

TEST_F(IdlePartsOfTheCaptureTest, OtherWorkThatWasLaunchedBeforeWaitedInAQueue) {
  EXPECT_EQ(GapsAroundOtherWork(1500, 1510),
            (Texts{"2000-2600 10 [launched before]", "2700-3000 10 app;work"}));
}

TEST_F(IdlePartsOfTheCaptureTest, BetweenTwoRecordingsNoGpuIsIdle) {
  Kernel(4, 9'000, 9'500);
  Kernel(5, 9'600, 9'700);
  Model model = builder_.Build();
  model.captures.resize(2);
  model.captures[0].info.start_ns = 500;
  model.captures[0].until_ns = 4'000;
  model.captures[1].info.start_ns = 8'000;
  model.captures[1].until_ns = 10'000;
  Analysis analysis(std::move(model));
  std::vector<uint64_t> gaps;
  for (const IdleGap& gap : FindAllGaps(analysis)) gaps.push_back(gap.ns);
  EXPECT_EQ(gaps, (std::vector<uint64_t>{1000, 100}));
  const std::vector<GpuBusy> busy = FindGpuBusy(analysis);
  ASSERT_EQ(busy.size(), 1u);
  EXPECT_EQ(busy[0].idle_ns(), 1100u);
  EXPECT_EQ(busy[0].active_ns(), 2500u + 700u);
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
                   {"[launched before];[GPU_Idle]", 100},
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
  EXPECT_EQ(Totals(IdleTimes(analysis, FindGpuBusy(analysis))),
            (Lines{{"[no CPU sample] in cudaStreamSynchronize", 500}, {"[unknown]", 100}}));
}

// It makes the stream wait, and returns at once.
TEST_F(GpuIdleTest, AStreamThatWaitsForAnEventIsNoWaitOfTheCpu) {
  Kernel(1, 1000, 2000);
  Kernel(2, 2500, 3000);
  Wait(20, 1900, 2600, kStreamWaitsForEvent);
  Analysis analysis(builder_.Build());
  EXPECT_EQ(Totals(WaitTimes(analysis, GpuNames(analysis, KernelNames::kFull))), Lines());
  EXPECT_EQ(Totals(IdleTimes(analysis, FindGpuBusy(analysis))),
            (Lines{{"[no CPU sample] before an unknown launch", 500}}));
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
  EXPECT_EQ(Totals(IdleTimes(analysis, FindGpuBusy(analysis))),
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
