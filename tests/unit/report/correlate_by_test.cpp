// --correlate: the same events matched in each way.
#include <gtest/gtest.h>

#include "report/base/output.h"
#include "report/model/loaded_events.h"
#include "report/trace/correlate.h"
#include "report/views/view.h"
#include "tests/unit/durations.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

using test::kLaunchKernel;
using test::kMemcpy;
using test::kMs;
constexpr CorrelateOptions kById{.by = CorrelateBy::kId};
constexpr CorrelateOptions kByNesting{.by = CorrelateBy::kNesting};
constexpr CorrelateOptions kByTime{.by = CorrelateBy::kTime};

class CorrelateByTest : public testing::Test {
 protected:
  CorrelateByTest() {
    for (const uint64_t instance : {1, 2}) {
      builder_.Callback(instance, ApiDomain::kRuntime, kLaunchKernel, "cudaLaunchKernel_v7000");
      builder_.Callback(instance, ApiDomain::kRuntime, kMemcpy, "cudaMemcpy_v3020");
      builder_.Clock(instance, 0, {1000});
      GpuProcess& process = builder_.events.gpu_processes.emplace_back();
      process.instance = {instance};
      process.pid = process.namespace_pid = static_cast<uint32_t>(instance * 100);
    }
    a_ = builder_.Stack({0x10});
    b_ = builder_.Stack({0x20});
  }
  Analysis& Run(const CorrelateOptions& options) {
    analysis_ = std::make_unique<Analysis>(builder_.Build(), SymbolOptions{}, options);
    return *analysis_;
  }
  const Correlation& Match(const CorrelateOptions& options) { return Run(options).correlation; }
  Launch LaunchOf(size_t work) const {
    const Correlation& correlation = analysis_->correlation;
    return correlation.launches[correlation.work[work].launch];
  }
  // A probe of the user's process 100, on its thread.
  void Probe(uint64_t enter_ns, uint64_t return_ns, StackId stack) {
    builder_.events.probes = {{.probe = 1,
                               .purpose = ProbePurpose::kRuntimeLaunch,
                               .function = builder_.Text("cudaLaunchKernel"),
                               .path = {}}};
    for (const uint64_t time_ns : {enter_ns, return_ns}) {
      ProbeHit& hit = builder_.events.probe_hits.emplace_back();
      hit.time_ns = time_ns;
      hit.probe = 1;
      hit.is_return = time_ns == return_ns;
      hit.pid = hit.tid = 100;
      hit.stack = hit.is_return ? StackId{} : stack;
    }
  }

  test::ModelBuilder builder_;
  StackId a_;
  StackId b_;
  std::unique_ptr<Analysis> analysis_;
};

TEST_F(CorrelateByTest, ParsesItsOption) {
  EXPECT_EQ(ParseCorrelate("auto").value().by, CorrelateBy::kAuto);
  EXPECT_EQ(ParseCorrelate("id").value().by, CorrelateBy::kId);
  EXPECT_EQ(ParseCorrelate("nesting").value().by, CorrelateBy::kNesting);
  EXPECT_EQ(ParseCorrelate("time").value().by, CorrelateBy::kTime);
  EXPECT_EQ(ParseCorrelate("time").value().window_ns, 10 * kMs);
  EXPECT_EQ(ParseCorrelate("time:500us").value().window_ns, 500'000u);
  EXPECT_EQ(ParseCorrelate("time:2").value().window_ns, 2'000 * kMs);
  for (const char* text : {"", "Time", "time:", "time:x", "time:1ms-2ms", "time:-1ms", "id:1ms"}) {
    EXPECT_FALSE(ParseCorrelate(text).ok()) << text;
  }
}

// The stack with the call's id was taken at another time than the one within the call.
TEST_F(CorrelateByTest, NestingGivesACallTheStackInIt) {
  const auto make = [&] {
    builder_ = {};
    builder_.events.gpu_processes.push_back(
        {.instance = {1}, .pid = 100, .namespace_pid = 100, .cupti_path = {}, .detail = {}});
    builder_.Callback(1, ApiDomain::kRuntime, kLaunchKernel, "cudaLaunchKernel_v7000");
    builder_.Clock(1, 0, {1000});
    a_ = builder_.Stack({0x10});
    b_ = builder_.Stack({0x20});
    builder_.Call(1, 7, kLaunchKernel, 5 * kMs, 6 * kMs, 100);
    builder_.Call(1, 8, kLaunchKernel, 15 * kMs, 16 * kMs, 100);
    builder_.Launch(1, 8, 5 * kMs + 10, 100, 100, a_);
    builder_.Launch(1, 7, 15 * kMs + 10, 100, 100, b_);
    builder_.Launch(1, 9, 15 * kMs + 20, 100, 101, b_);  // another thread: in no call
    builder_.AddKernel(1, 7, 20 * kMs, 21 * kMs, "k");
  };
  make();
  const Correlation& nested = Match(kByNesting);
  ASSERT_EQ(nested.launches.size(), 3u);
  EXPECT_EQ(LaunchOf(0).stack, a_);
  EXPECT_EQ(LaunchOf(0).correlation_id, 7u);
  EXPECT_EQ(LaunchOf(0).stack_match, MatchKind::kByNesting);
  EXPECT_EQ(nested.work[0].match, MatchKind::kById);  // GPU work has no thread
  EXPECT_EQ(nested.launches[1].stack, b_);
  EXPECT_EQ(nested.launches[2].correlation_id, 9u);
  EXPECT_EQ(nested.launches[2].stack_match, MatchKind::kNone);
  EXPECT_EQ(nested.counts.stacks_by_nesting, 2u);
  make();
  // By ids the stacks are the other way round: too far from the calls to be theirs.
  const Correlation& by_id = Match(kById);
  EXPECT_EQ(by_id.counts.stacks_by_nesting, 0u);
  for (const Launch& launch : by_id.launches) EXPECT_NE(launch.stack_match, MatchKind::kByNesting);
}

TEST_F(CorrelateByTest, AStackJustBeforeItsCallIsInIt) {
  builder_.Call(1, 7, kLaunchKernel, 5 * kMs, 6 * kMs, 100);
  builder_.Launch(1, 0, 5 * kMs - 800, 100, 100, a_);
  const Correlation& result = Match(kByNesting);
  ASSERT_EQ(result.launches.size(), 1u);
  EXPECT_EQ(result.launches[0].stack, a_);
}

TEST_F(CorrelateByTest, ASecondStackInACallIsADuplicate) {
  builder_.Call(1, 7, kLaunchKernel, 5 * kMs, 6 * kMs, 100);
  builder_.Launch(1, 7, 5 * kMs + 1, 100, 100, a_);
  builder_.Launch(1, 7, 5 * kMs + 2, 100, 100, b_);
  const Correlation& result = Match(kByNesting);
  ASSERT_EQ(result.launches.size(), 1u);
  EXPECT_EQ(result.launches[0].stack, a_);
  EXPECT_EQ(result.counts.stacks_duplicate, 1u);
}

TEST_F(CorrelateByTest, OnlyIdsLeaveTheStacksOfProbes) {
  builder_.Call(1, 7, kLaunchKernel, 5 * kMs, 6 * kMs, 100);
  Probe(5 * kMs - 100, 6 * kMs + 100, a_);
  const Correlation& by_id = Match(kById);
  ASSERT_EQ(by_id.launches.size(), 1u);  // the probe saw this call, there is no other
  EXPECT_FALSE(by_id.launches[0].has_stack);
  EXPECT_EQ(by_id.counts.stacks_missing, 1u);
}

TEST_F(CorrelateByTest, TimeTakesTheNearestCallBefore) {
  builder_.Call(1, 7, kLaunchKernel, 5 * kMs, 5 * kMs + 10, 100);
  builder_.Call(1, 8, kLaunchKernel, 7 * kMs, 7 * kMs + 10, 100);
  builder_.Call(1, 9, kMemcpy, 7 * kMs + 20, 7 * kMs + 30, 100);        // starts no kernel
  builder_.Call(2, 3, kLaunchKernel, 7 * kMs + 40, 7 * kMs + 50, 200);  // another process
  builder_.AddKernel(1, 0, 8 * kMs, 9 * kMs, "near");
  builder_.AddKernel(1, 8, 6 * kMs, 6 * kMs + 5, "early");
  builder_.AddKernel(1, 7, 4 * kMs, 5 * kMs, "before any");
  builder_.AddKernel(1, 7, 0, 0, "without a time");
  const Correlation& result = Match(kByTime);
  EXPECT_EQ(LaunchOf(0).correlation_id, 8u);
  EXPECT_EQ(result.work[0].match, MatchKind::kByTime);
  EXPECT_EQ(LaunchOf(1).correlation_id, 7u);  // whatever its own id says
  EXPECT_EQ(result.work[2].launch, GpuWork::kNoLaunch);
  EXPECT_EQ(result.work[3].match, MatchKind::kNone);
  EXPECT_EQ(result.counts.work_by_match[static_cast<size_t>(MatchKind::kByTime)], 2u);
  EXPECT_EQ(result.counts.work_by_match[static_cast<size_t>(MatchKind::kNone)], 2u);
  EXPECT_EQ(result.counts.kernels_without_launch, 2u);
}

// The program is ahead of the GPU.
TEST_F(CorrelateByTest, WorkThatQueuesIsInTheOrderOfItsCalls) {
  for (uint32_t i = 1; i <= 8; ++i) {
    builder_.Call(1, i, kLaunchKernel, kMs + i * 1000, kMs + i * 1000 + 10, 100);
    builder_.AddKernel(1, 0, 2 * kMs + i * 100'000, 2 * kMs + i * 100'000 + 90'000, "k");
  }
  builder_.Call(1, 9, kLaunchKernel, 4 * kMs, 4 * kMs + 10, 100);  // without a record
  builder_.Call(1, 10, kLaunchKernel, 5 * kMs, 5 * kMs + 10, 100);
  builder_.AddKernel(1, 0, 6 * kMs, 7 * kMs, "k");
  const Correlation& result = Match(kByTime);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(LaunchOf(i).correlation_id, i + 1);
  EXPECT_EQ(LaunchOf(8).correlation_id, 10u);
  EXPECT_EQ(result.counts.launches_matched, 9u);
}

TEST_F(CorrelateByTest, NodesOfAGraphShareItsLaunch) {
  builder_.Callback(1, ApiDomain::kRuntime, 311, "cudaGraphLaunch_v10000");
  builder_.Call(1, 7, 311, 5 * kMs, 5 * kMs + 10, 100);
  builder_.Call(1, 8, kLaunchKernel, 5 * kMs + 20, 5 * kMs + 30, 100);
  builder_.AddKernel(1, 0, 6 * kMs, 6 * kMs + 10, "a").graph_node_id = 3;
  builder_.AddKernel(1, 0, 6 * kMs + 20, 6 * kMs + 30, "b").graph_node_id = 4;
  Match(kByTime);
  EXPECT_EQ(LaunchOf(0).correlation_id, 7u);
  EXPECT_EQ(LaunchOf(1).correlation_id, 7u);
}

TEST_F(CorrelateByTest, EachKindOfWorkHasItsCalls) {
  builder_.Call(1, 7, kMemcpy, 5 * kMs, 5 * kMs + 10, 100);
  builder_.Call(1, 8, kLaunchKernel, 6 * kMs, 6 * kMs + 10, 100).return_value = 1;
  builder_.Call(1, 9, kLaunchKernel, 6 * kMs + 20, 6 * kMs + 30, 100).graph_nodes = 1;
  Memcpy& copy = builder_.events.memcpys.emplace_back();
  copy.instance = {1};
  copy.start_ns = 7 * kMs;
  copy.end_ns = 8 * kMs;
  builder_.AddKernel(1, 8, 7 * kMs, 8 * kMs, "k");
  const Correlation& result = Match(kByTime);
  EXPECT_EQ(result.work[0].launch, GpuWork::kNoLaunch);  // those calls started nothing
  EXPECT_EQ(LaunchOf(1).correlation_id, 7u);
}

// A copy from pageable memory is made in parts while its call waits.
TEST_F(CorrelateByTest, PartsOfOneCopyAreOfTheCallAroundThem) {
  builder_.Call(1, 6, kMemcpy, 4 * kMs, 5 * kMs, 100);
  builder_.Call(1, 7, kMemcpy, 6 * kMs, 9 * kMs, 100);
  for (const uint64_t start_ns : {7 * kMs, 8 * kMs}) {
    Memcpy& copy = builder_.events.memcpys.emplace_back();
    copy.instance = {1};
    copy.start_ns = start_ns;
    copy.end_ns = start_ns + 10;
  }
  Match(kByTime);
  EXPECT_EQ(LaunchOf(0).correlation_id, 7u);
  EXPECT_EQ(LaunchOf(1).correlation_id, 7u);
}

TEST_F(CorrelateByTest, TheWindowIsTheOptions) {
  builder_.Call(1, 7, kLaunchKernel, 5 * kMs, 5 * kMs + 10, 100);
  builder_.AddKernel(1, 1, 8 * kMs, 9 * kMs, "in time");
  builder_.AddKernel(1, 1, 8 * kMs + 1, 9 * kMs, "late");
  const Correlation& result = Match({.by = CorrelateBy::kTime, .window_ns = 3 * kMs});
  EXPECT_EQ(LaunchOf(0).correlation_id, 7u);
  EXPECT_EQ(result.work[1].launch, GpuWork::kNoLaunch);
}

TEST_F(CorrelateByTest, TheSummaryAndTheTraceSayHow) {
  builder_.Call(1, 7, kLaunchKernel, 5 * kMs, 5 * kMs + 10, 100);
  builder_.Launch(1, 7, 5 * kMs + 1, 100, 100, a_);
  builder_.AddKernel(1, 7, 8 * kMs, 9 * kMs, "k");
  Analysis& analysis = Run(kByTime);
  const std::string summary = test::Written([&](Output& out) { WriteSummary(analysis, {}, out); });
  EXPECT_NE(summary.find("\nmatched   GPU work 1 by time\n"), std::string::npos) << summary;
  std::string notes;
  const std::string trace =
      test::Written([&](Output& out) { WriteChromeTrace(analysis, {}, out, notes); });
  EXPECT_NE(trace.find("\"matched\":\"by time\""), std::string::npos);
}

TEST_F(CorrelateByTest, WhatIsMatchedByIdIsNotMentioned) {
  builder_.Call(1, 7, kLaunchKernel, 5 * kMs, 5 * kMs + 10, 100);
  builder_.Launch(1, 7, 5 * kMs + 1, 100, 100, a_);
  builder_.AddKernel(1, 7, 8 * kMs, 9 * kMs, "k");
  Analysis& analysis = Run({});
  const std::string summary = test::Written([&](Output& out) { WriteSummary(analysis, {}, out); });
  EXPECT_EQ(summary.find("\nmatched "), std::string::npos);
  std::string notes;
  const std::string trace =
      test::Written([&](Output& out) { WriteChromeTrace(analysis, {}, out, notes); });
  EXPECT_EQ(trace.find("matched"), std::string::npos);
}

TEST_F(CorrelateByTest, TheSummaryCountsNestedStacks) {
  builder_.Call(1, 7, kLaunchKernel, 5 * kMs, 5 * kMs + 10, 100);
  builder_.Launch(1, 7, 5 * kMs + 1, 100, 100, a_);
  builder_.AddKernel(1, 7, 8 * kMs, 9 * kMs, "k");
  Analysis& analysis = Run(kByNesting);
  const std::string summary = test::Written([&](Output& out) { WriteSummary(analysis, {}, out); });
  EXPECT_NE(summary.find("\nmatched   GPU work 1 by id; stack of 1 call by nesting\n"),
            std::string::npos)
      << summary;
}

// What a probe saw has no id, so that nothing by ids matches it.
TEST_F(CorrelateByTest, CallsOfProbesAreNotMatchedByIds) {
  const auto said = [this](const CorrelateOptions& options) {
    Probe(1'000, 2'000, a_);
    Analysis& analysis = Run(options);
    EXPECT_EQ(analysis.correlation.counts.launches_probed, 1u);
    return test::Written([&](Output& output) { WriteSummary(analysis, {}, output); });
  };
  EXPECT_NE(said({}).find("1 recorded by probes, matched by nesting: no GPU times"),
            std::string::npos);
  builder_ = {};
  EXPECT_NE(said(kById).find("1 recorded by probes, not matched: no GPU times"), std::string::npos);
}

}  // namespace
}  // namespace xpu
