#include "report/workload/steps.h"

#include <memory>

#include <gtest/gtest.h>

#include "report/analysis/filter.h"
#include "report/critical_path/critical_path.h"
#include "report/query/gpu_busy.h"
#include "report/query/gpu_idle.h"
#include "report/views/view.h"
#include "report/workload/slow_steps.h"
#include "report/workload/step_selection.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

// One process, one GPU; times in ns, the GPU's clock is the CPU's.
class StepsTest : public testing::Test {
 protected:
  StepsTest() {
    builder_.Process(ProcessEventKind::kExec, 0, 10, 10, "app");
    builder_.Clock(0xa, 0, {0});
    builder_.Callback(0xa, ApiDomain::kRuntime, 1, "cudaLaunchKernel");
    GpuProcess& process = builder_.events.gpu_processes.emplace_back();
    process.instance = InstanceId{0xa};
    process.pid = process.namespace_pid = 10;
    builder_.Source(100);
  }

  // A call of 10 ns at a place of main, and its kernel `delay_ns` after it began.
  void Launch(uint64_t time_ns, uint64_t place, uint64_t delay_ns, uint64_t ns) {
    const uint32_t id = ++launches_;
    builder_.Call(0xa, id, 1, time_ns, time_ns + 10, 10);
    builder_.Launch(0xa, id, time_ns, 10, 10, builder_.Stack({0x1000, place}));
    builder_.AddKernel(0xa, id, time_ns + delay_ns, time_ns + delay_ns + ns, "k");
  }
  void Range(uint64_t time_ns, NvtxKind kind, std::string_view text = {}) {
    NvtxEvent& event = builder_.events.nvtx_events.emplace_back();
    event.instance = InstanceId{0xa};
    event.time_ns = time_ns;
    event.kind = kind;
    event.tid = 10;
    event.text = builder_.Text(text);
  }
  // Steps of 1,000 ns with two kernels of 100 ns; the one that is slow takes 5,000 ns.
  void Steps(size_t count, size_t slow) {
    uint64_t time_ns = 1'000;
    for (size_t i = 0; i < count; ++i) {
      Launch(time_ns, 1, 50, 100);
      Launch(time_ns + 200, 2, 50, 100);
      time_ns += i == slow ? 5'000 : 1'000;
    }
  }
  std::vector<StepSeries> Find(std::string_view definition = "auto") {
    definition_ = ParseStepDefinition(definition).value();
    analysis_ = std::make_unique<Analysis>(builder_.Build());
    return FindSteps(*analysis_, definition_);
  }

  // Of 20 steps whose two slow ones have so many CPU samples each, and no others any.
  std::string SlowText(size_t samples) {
    uint64_t time_ns = 1'000;
    for (size_t i = 0; i < 20; ++i) {
      const bool is_slow = i == 4 || i == 11;
      Launch(time_ns, 1, 50, 900);
      for (size_t j = 0; is_slow && j < samples; ++j) {
        builder_.Sample(time_ns + 100 + j, 10, 10, builder_.Stack({0x1000, 9}));
      }
      time_ns += is_slow ? 1'100 : 1'000;
    }
    const SlowSteps steps = FindSlowSteps(Find()).value();
    Analysis median = *analysis_;
    SelectSteps(steps.slow.series, *analysis_);
    SelectSteps(steps.median.series, median);
    const StepComparison compared =
        CompareSteps(steps, *analysis_, median, {.mode = TreeMode::kCpu});
    growth_ = FindGrowth(compared, analysis_->frames);
    return SlowStepsText(steps, compared, analysis_->frames);
  }

  uint32_t launches_ = 0;
  StepGrowth growth_;
  test::ModelBuilder builder_;
  StepDefinition definition_;
  std::unique_ptr<Analysis> analysis_;
};

TEST_F(StepsTest, StepsAreDetectedWithWhatTheyCost) {
  Steps(10, 4);
  const std::vector<StepSeries> found = Find();
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].steps.size(), 10u);
  EXPECT_EQ(found[0].thread.tid, 10u);
  EXPECT_EQ(found[0].steps[3].start_ns, 4'000u);
  EXPECT_EQ(found[0].steps[3].end_ns, 5'000u);
  EXPECT_EQ(found[0].steps[9].end_ns, 14'210u);  // its last call
  EXPECT_EQ(HowFound(found[0], definition_),
            "detected: 2 launches repeated, the same in 10 of 10 steps");
  const std::vector<StepCost> costs = StepCosts(*analysis_, found[0]);
  ASSERT_EQ(costs.size(), 10u);
  EXPECT_EQ(costs[3].duration_ns, 1'000u);
  EXPECT_EQ(costs[3].kernels, 2u);
  EXPECT_EQ(costs[3].busy_ns, 200u);
  EXPECT_EQ(costs[3].idle_ns, 800u);
  EXPECT_EQ(costs[4].duration_ns, 5'000u);
  EXPECT_EQ(costs[4].idle_ns, 4'800u);
  EXPECT_EQ(costs[9].idle_ns, 100u);
}

TEST_F(StepsTest, AStepThatAPauseCutsIsLeftOut) {
  builder_.events.recording_info.emplace_back().start_ns = 0;
  builder_.events.recording_switches.push_back({5'300, false, builder_.Text("--every")});
  builder_.events.recording_switches.push_back({9'500, true, builder_.Text("--every")});
  builder_.End(20'000);
  Steps(10, 4);  // that one until 10,000
  const std::vector<StepSeries> found = Find();
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].steps.size(), 9u);
  EXPECT_EQ(found[0].steps[3].end_ns, 5'000u);
  EXPECT_EQ(found[0].steps[4].start_ns, 10'000u);
  EXPECT_EQ(HowFound(found[0], definition_),
            "detected: 2 launches repeated, the same in 9 of 9 steps");
  // Nor is there a path through it.
  const CriticalWindow window = FindCriticalSteps(*analysis_, found, std::nullopt);
  EXPECT_EQ(window.from_ns, 10'000u);
  EXPECT_EQ(window.to_ns, 14'210u);
  EXPECT_EQ(window.steps, 5u);
  EXPECT_EQ(window.first, 4u);
}

TEST_F(StepsTest, AWarmUpIsCounted) {
  Steps(12, 0);
  EXPECT_EQ(Find()[0].warm_up, 1u);
}

TEST_F(StepsTest, RangesAreSteps) {
  Steps(10, 4);
  for (uint64_t i = 0; i < 3; ++i) {
    Range(1'100 + i * 2'000, NvtxKind::kPush, "step 7");
    Range(1'150 + i * 2'000, NvtxKind::kPush, "step inside");
    Range(1'160 + i * 2'000, NvtxKind::kPop);
    Range(1'300 + i * 2'000, NvtxKind::kPop);
  }
  const std::vector<StepSeries> found = Find("nvtx:^:step");
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].steps.size(), 3u);
  EXPECT_EQ(found[0].steps[1].start_ns, 3'100u);
  EXPECT_EQ(found[0].steps[1].end_ns, 3'300u);
  EXPECT_EQ(StepCosts(*analysis_, found[0])[1].kernels, 1u);
}

TEST_F(StepsTest, AProgramWithoutALoopHasNoSteps) {
  for (uint64_t i = 0; i < 20; ++i) Launch(1'000 + i * 100, i, 10, 20);
  EXPECT_TRUE(Find().empty());
  EXPECT_TRUE(FindSteps(*analysis_, ParseStepDefinition("function:nothing").value()).empty());
}

TEST_F(StepsTest, ARangeOfStepsIsAFilter) {
  Steps(10, 4);
  builder_.Sample(3'990, 10, 10, StackId{});
  builder_.Sample(4'010, 10, 10, StackId{});
  builder_.Sample(5'500, 11, 11, StackId{});  // of another process, meanwhile
  const std::vector<StepSeries> found = Find();
  ASSERT_TRUE(SelectSteps(ParseStepRange("3-4").value(), found, *analysis_).ok());
  EXPECT_EQ(analysis_->Work().size(), 4u);
  EXPECT_EQ(analysis_->Launches().size(), 4u);
  EXPECT_EQ(analysis_->CpuSamples().size(), 2u);
  EXPECT_EQ(StepCosts(*analysis_, found[0])[3].kernels, 2u);
  EXPECT_EQ(StepCosts(*analysis_, found[0])[2].kernels, 0u);
  EXPECT_EQ(SelectSteps({10, 20}, found, *analysis_).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(SelectSteps({}, {}, *analysis_).error().kind, ErrorKind::kUsage);
}

TEST_F(StepsTest, AFilterOfProcessesLeavesTheirSteps) {
  Steps(10, 4);
  ASSERT_EQ(Find().size(), 1u);
  FilterOptions filter;
  filter.pids = {10};
  analysis_->shown = SelectPart(filter, *analysis_).value();
  EXPECT_EQ(FindSteps(*analysis_, definition_).size(), 1u);
  filter.pids = {11};
  analysis_->shown = SelectPart(filter, *analysis_).value();
  EXPECT_TRUE(FindSteps(*analysis_, definition_).empty());
}

// Of 20 steps two wait 5,000 ns in a function of their own.
TEST_F(StepsTest, SlowStepsAreComparedWithMedianOnes) {
  builder_.Source(100);
  uint64_t time_ns = 1'000;
  for (size_t i = 0; i < 20; ++i) {
    const bool is_slow = i == 4 || i == 11;
    Launch(time_ns, 1, 50, 100);
    Launch(time_ns + 200, 2, 50, is_slow ? 160 : 100);
    time_ns += is_slow ? 6'000 : 1'000;
  }
  const Result<SlowSteps> found = FindSlowSteps(Find());
  ASSERT_TRUE(found.ok());
  const SlowSteps& steps = found.value();
  EXPECT_EQ(steps.steps, 20u);
  EXPECT_EQ(steps.slowest, (std::vector<size_t>{4, 11}));
  EXPECT_EQ(steps.slow.average_ns(), 6'000u);
  EXPECT_EQ(steps.median.count, 10u);
  EXPECT_EQ(steps.median.average_ns(), 1'000u);

  Analysis median = *analysis_;
  SelectSteps(steps.slow.series, *analysis_);
  SelectSteps(steps.median.series, median);
  const StepComparison compared = CompareSteps(steps, *analysis_, median, {});
  const StepGrowth growth = FindGrowth(compared, analysis_->frames);
  EXPECT_EQ(growth.most, StepGrowth::Kind::kIdle);
  EXPECT_EQ(growth.more_ns[static_cast<size_t>(StepGrowth::Kind::kIdle)], 4'940);
  EXPECT_EQ(growth.more_ns[static_cast<size_t>(StepGrowth::Kind::kGpu)], 60);
  EXPECT_EQ(growth.where_ns, 4'940);
  const std::string text = SlowStepsText(steps, compared, analysis_->frames);
  EXPECT_TRUE(
      text.starts_with("slow    2 of 20 steps, 6 us on average: 4, 11\n"
                       "median  10 steps between the quartiles, 1 us on average\n"
                       "change  idle GPU +4.94 us, GPU +60 ns, CPU +0 ns per step\n"
                       "most    idle GPU +4.94 us in "))
      << text;
}

TEST_F(StepsTest, TheLastStepHasItsIdleTime) {
  Steps(20, 9);
  const std::vector<StepSeries> found = Find();
  ASSERT_TRUE(SelectSteps({9, 9}, found, *analysis_).ok());
  const std::vector<GpuBusy> busy = FindGpuBusy(*analysis_);
  ASSERT_EQ(busy.size(), 1u);
  EXPECT_EQ(busy[0].busy_ns, 200u);
  EXPECT_EQ(busy[0].idle_ns(), 4'800u);
}

// Two ranks, each with its GPU, whose slow steps are at different times.
TEST_F(StepsTest, OfEachGpuTheStepsOfItsOwnRankCount) {
  builder_.Process(ProcessEventKind::kExec, 0, 20, 20, "app");
  builder_.Clock(0xb, 0, {0});
  builder_.Callback(0xb, ApiDomain::kRuntime, 1, "cudaLaunchKernel");
  GpuProcess& process = builder_.events.gpu_processes.emplace_back();
  process.instance = InstanceId{0xb};
  process.pid = process.namespace_pid = 20;
  Steps(20, 4);
  uint64_t time_ns = 1'500;
  for (uint32_t i = 0; i < 20; ++i) {
    builder_.Call(0xb, i + 1, 1, time_ns, time_ns + 10, 20);
    builder_.Launch(0xb, i + 1, time_ns, 20, 20, builder_.Stack({0x1000, 7}));
    builder_.AddKernel(0xb, i + 1, time_ns + 50, time_ns + 250, "k").device_id = 1;
    time_ns += i == 11 ? 3'000 : 1'000;
  }
  // Of the second rank, so in its steps.
  builder_.Process(ProcessEventKind::kFork, 1, 21, 21, "loader", 20, 20);
  builder_.Sample(13'000, 21, 21, StackId{});
  const SlowSteps steps = FindSlowSteps(Find()).value();
  EXPECT_EQ(steps.slow.count, 4u);
  for (const StepSeries& series : steps.slow.series) ASSERT_EQ(series.steps.size(), 2u);
  SelectSteps(steps.slow.series, *analysis_);
  const std::vector<GpuBusy> busy = FindGpuBusy(*analysis_);
  ASSERT_EQ(busy.size(), 2u);
  // One slow step each, and the very first one, which counts from its first work on.
  EXPECT_EQ(busy[0].idle_ns(), 6'000u - 400 - 50);
  EXPECT_EQ(busy[1].idle_ns(), 4'000u - 400 - 50);
  EXPECT_EQ(analysis_->CpuSamples().size(), 1u);
  uint64_t parts_ns = 0;
  CallPaths paths(*analysis_, {});
  IdleParts parts(*analysis_, paths);
  for (const IdleGap& gap : FindAllGaps(*analysis_)) {
    for (const IdlePart& part : parts.Of(gap)) parts_ns += part.ns;
  }
  EXPECT_EQ(parts_ns, 5'550u + 3'550);
}

TEST_F(StepsTest, OneSampleDoesNotSayWhereTheTimeWent) {
  EXPECT_NE(SlowText(1).find("\nmost    too few CPU samples to tell where\n"), std::string::npos);
  EXPECT_TRUE(growth_.has_few_samples);
  EXPECT_FALSE(growth_.where);
}

TEST_F(StepsTest, SixSamplesDo) {
  EXPECT_NE(SlowText(6).find("\nmost    CPU +600 ns in "), std::string::npos);
  EXPECT_EQ(growth_.most, StepGrowth::Kind::kCpu);
  EXPECT_FALSE(growth_.has_few_samples);
}

TEST_F(StepsTest, FewStepsHaveNoSlowestTenth) {
  Steps(9, 20);
  EXPECT_EQ(FindSlowSteps(Find()).error().message,
            "--slow-steps: 9 steps after the warm-up; the slowest tenth needs at least 10");
  EXPECT_EQ(FindSlowSteps({}).error().message, "--slow-steps: no steps were found");
}

TEST_F(StepsTest, SlowStepsAreFoldedWithTwoValues) {
  Steps(20, 9);
  const SlowSteps steps = FindSlowSteps(Find()).value();
  Analysis median = *analysis_;
  SelectSteps(steps.slow.series, *analysis_);
  SelectSteps(steps.median.series, median);
  ViewOptions options{.tree = {}, .unit = TimeUnit::kNanoseconds};
  std::string notes;
  const std::string text = test::Written([&](Output& output) {
    WriteSlowStepsFolded(steps, *analysis_, median, options, output, notes);
  });
  EXPECT_NE(text.find("[GPU_Kernel]k 200 200\n"), std::string::npos) << text;
}

TEST_F(StepsTest, RangesAreChecked) {
  EXPECT_EQ(ParseStepRange("7").value().last, 7u);
  EXPECT_EQ(ParseStepRange("7-").value().last, UINT64_MAX);
  EXPECT_EQ(ParseStepRange("-7").value().first, 0u);
  for (const char* wrong : {"", "-", "a", "3-1", "1-b", "1-2-3"}) {
    EXPECT_FALSE(ParseStepRange(wrong).ok()) << wrong;
  }
}

TEST_F(StepsTest, DefinitionsAreChecked) {
  EXPECT_TRUE(ParseStepDefinition("function:train_step").ok());
  EXPECT_FALSE(ParseStepDefinition("nvtx:").ok());
  EXPECT_FALSE(ParseStepDefinition("nvtx:(").ok());
  EXPECT_FALSE(ParseStepDefinition("train_step").ok());
}

}  // namespace
}  // namespace xpu
