#include <optional>

#include <gtest/gtest.h>

#include "report/trace/trace.h"
#include "tests/unit/durations.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

using test::kLaunchKernel;
using test::kMemcpy;
using test::kSecond;

class CorrelateTest : public testing::Test {
 protected:
  CorrelateTest() {
    for (const uint64_t instance : {1, 2}) {
      builder_.Callback(instance, ApiDomain::kRuntime, kLaunchKernel, "cudaLaunchKernel_v7000");
      builder_.Callback(instance, ApiDomain::kRuntime, kMemcpy, "cudaMemcpy_v3020");
      builder_.Clock(instance, 0, {1000});
    }
    stack_ = builder_.Stack({0x10, 0x20});
  }
  const Correlation& Run() {
    trace_.emplace(builder_.Build());
    return trace_->correlation;
  }
  Launch LaunchOf(size_t work) const {
    const Correlation& result = trace_->correlation;
    return result.launches[result.work[work].launch];
  }

  test::ModelBuilder builder_;
  StackId stack_;
  std::optional<Trace> trace_;
};

TEST_F(CorrelateTest, CallStackAndKernelOfOneId) {
  builder_.Call(1, 7, kLaunchKernel, 5000, 6000, 55);
  builder_.Launch(1, 7, 5100, 500, 501, stack_);
  builder_.AddKernel(1, 7, 8000, 9000, "k");
  const Correlation& result = Run();
  ASSERT_EQ(result.launches.size(), 1u);
  const Launch& launch = result.launches[0];
  EXPECT_TRUE(launch.has_call);
  EXPECT_EQ(launch.stack, stack_);
  EXPECT_EQ(launch.stack_match, MatchKind::kById);
  EXPECT_EQ(launch.start_ns, 5000u);
  EXPECT_EQ(launch.end_ns, 6000u);
  EXPECT_EQ(launch.pid, 500u);  // as the recorder sees it
  EXPECT_EQ(launch.tid, 501u);
  EXPECT_EQ(launch.program_tid, 55u);
  EXPECT_EQ(launch.domain, ApiDomain::kRuntime);  // the outermost call's, not the marker's
  EXPECT_EQ(launch.kind, ApiKind::kKernelLaunch);
  ASSERT_EQ(result.work.size(), 1u);
  EXPECT_EQ(result.work[0].match, MatchKind::kById);
  EXPECT_EQ(result.work[0].launch, 0u);
  EXPECT_EQ(result.work[0].duration_ns, 1000u);
  EXPECT_EQ(result.counts.worst_margin_ns, 3000);
}

TEST_F(CorrelateTest, TwoInstancesWithTheSameIds) {
  for (uint32_t id = 1; id <= 10; ++id) {
    builder_.Launch(1, id, 1000 * id, 100, 100, stack_);
    builder_.Launch(2, id, 1000 * id, 200, 200, stack_);
    builder_.AddKernel(2, id, 1000 * id + 100, 1000 * id + 200, "b");
    builder_.AddKernel(1, id, 1000 * id + 100, 1000 * id + 200, "a");
  }
  const Correlation& result = Run();
  ASSERT_EQ(result.work.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    const Model& model = trace_->model;
    const bool is_first = model.Text(model.events.kernels[i].name) == "a";
    EXPECT_EQ(LaunchOf(i).pid, is_first ? 100u : 200u);
    EXPECT_EQ(LaunchOf(i).correlation_id, result.work[i].correlation_id);
    EXPECT_EQ(result.work[i].match, MatchKind::kById);
  }
}

TEST_F(CorrelateTest, AnIdThatWrappedIsDistinguishedByTime) {
  const StackId other = builder_.Stack({0x10, 0x30});
  builder_.Call(1, 7, kLaunchKernel, 1 * kSecond, 1 * kSecond + 10, 1);
  builder_.Call(1, 7, kLaunchKernel, 9000 * kSecond, 9000 * kSecond + 10, 1);
  builder_.Launch(1, 7, 9000 * kSecond + 5, 1, 1, other);
  builder_.Launch(1, 7, 1 * kSecond + 5, 1, 1, stack_);
  builder_.AddKernel(1, 7, 9000 * kSecond + 100, 9000 * kSecond + 200, "late");
  // Queued after other work for an hour: still the first launch.
  builder_.AddKernel(1, 7, 3600 * kSecond, 3600 * kSecond + 200, "early");
  // The fitted clock is a little off: the kernel seems to start before its call.
  builder_.AddKernel(1, 7, 9000 * kSecond - 500'000, 9000 * kSecond + 200, "off");
  const Correlation& result = Run();
  ASSERT_EQ(result.launches.size(), 2u);
  EXPECT_EQ(LaunchOf(0).stack, other);
  EXPECT_EQ(LaunchOf(1).stack, stack_);
  EXPECT_EQ(LaunchOf(2).stack, other);
  EXPECT_EQ(result.launches[0].stack_match, MatchKind::kByIdAndTime);
  for (const GpuWork& work : result.work) EXPECT_EQ(work.match, MatchKind::kByIdAndTime);
  EXPECT_EQ(result.counts.worst_margin_ns, -500'000);
  EXPECT_EQ(result.counts.kernels_before_launch, 1u);
}

TEST_F(CorrelateTest, WithoutATimeAWrappedIdCannotBeMatched) {
  builder_.Launch(1, 7, 1 * kSecond, 1, 1, stack_);
  builder_.Launch(1, 7, 9000 * kSecond, 1, 1, stack_);
  builder_.AddKernel(1, 7, 0, 0, "k");
  const Correlation& result = Run();
  EXPECT_EQ(result.work[0].launch, GpuWork::kNoLaunch);
  EXPECT_EQ(result.work[0].match, MatchKind::kNone);
}

TEST_F(CorrelateTest, NestedMarkersOfOneCallCountOnce) {
  const StackId inner = builder_.Stack({0x10, 0x20, 0x30});
  builder_.Call(1, 7, kLaunchKernel, 5000, 6000, 1);
  builder_.Launch(1, 7, 5100, 1, 1, stack_);
  builder_.Launch(1, 7, 5200, 1, 1, inner);
  const Correlation& result = Run();
  ASSERT_EQ(result.launches.size(), 1u);
  EXPECT_EQ(result.launches[0].stack, stack_);  // the outer one
  EXPECT_EQ(result.counts.stacks_duplicate, 1u);
}

TEST_F(CorrelateTest, AStackJustBeforeItsCallIsOfTheCall) {
  builder_.Launch(1, 7, 4990, 1, 1, stack_);
  builder_.Call(1, 7, kLaunchKernel, 5000, 6000, 1);
  const Correlation& result = Run();
  ASSERT_EQ(result.launches.size(), 1u);
  EXPECT_TRUE(result.launches[0].has_call);
  EXPECT_TRUE(result.launches[0].has_stack);
}

TEST_F(CorrelateTest, LaunchesSeenAreMatchedOrPending) {
  builder_.Call(1, 1, kLaunchKernel, 1000, 1100, 1);  // matched
  builder_.AddKernel(1, 1, 1200, 1300, "k");
  builder_.Call(1, 2, kLaunchKernel, 2000, 2100, 1);                     // pending
  builder_.Call(1, 3, kLaunchKernel, 3000, 3100, 1).return_value = 700;  // failed
  builder_.Call(1, 4, kMemcpy, 4000, 4100, 1);                           // no launch
  builder_.Launch(1, 5, 5000, 1, 1, stack_);                             // pending, no call
  builder_.AddKernel(1, 99, 6000, 6100, "k");                            // no launch known
  const Correlation& result = Run();
  EXPECT_EQ(result.counts.launches_seen, 3u);  // those that owe a record
  EXPECT_EQ(result.counts.launches_matched, 1u);
  EXPECT_EQ(result.counts.launches_pending, 2u);
  EXPECT_EQ(result.counts.launches_failed, 1u);
  EXPECT_EQ(result.counts.kernels_without_launch, 1u);
  EXPECT_EQ(result.counts.stacks_missing, 4u);
}

TEST_F(CorrelateTest, RecordsWithoutAValidTimeAreCountedNotSummed) {
  builder_.AddKernel(1, 1, 0, 0, "zero");
  builder_.AddKernel(1, 2, 500, 400, "backwards");
  builder_.AddKernel(1, 3, 500, 500, "empty but valid");
  const Correlation& result = Run();
  EXPECT_EQ(result.counts.work_without_time, 2u);
  EXPECT_FALSE(result.work[0].timed);
  EXPECT_FALSE(result.work[1].timed);
  EXPECT_EQ(result.work[1].duration_ns, 0u);
  EXPECT_TRUE(result.work[2].timed);
}

TEST_F(CorrelateTest, ThreadsOfCallsWithoutAStack) {
  builder_.events.gpu_processes.push_back({.time_ns = 1,
                                           .instance = {1},
                                           .state = InjectState::kActive,
                                           .pid = 500,
                                           .namespace_pid = 5,
                                           .cupti_path = {},
                                           .detail = {}});
  builder_.Call(1, 1, kLaunchKernel, 1000, 1100, 6);
  builder_.Launch(1, 1, 1050, 500, 501, stack_);
  builder_.Call(1, 2, kLaunchKernel, 2000, 2100, 6);  // the same thread, its stack was lost
  builder_.Call(1, 3, kLaunchKernel, 3000, 3100, 7);  // a thread without stacks
  const Correlation& result = Run();
  EXPECT_EQ(result.launches[1].pid, 500u);
  EXPECT_EQ(result.launches[1].tid, 501u);
  EXPECT_EQ(result.launches[2].pid, 500u);
  EXPECT_EQ(result.launches[2].tid, 7u);
}

// Dropping every 7th stack changes nothing about the others.
TEST_F(CorrelateTest, LosingStacksLeavesTheOthersAlone) {
  for (uint32_t id = 1; id <= 70; ++id) {
    builder_.Call(1, id, kLaunchKernel, 1000 * id, 1000 * id + 100, 1);
    if (id % 7 != 0) builder_.Launch(1, id, 1000 * id + 10, 1, 1, builder_.Stack({0x10, id}));
    builder_.AddKernel(1, id, 1000 * id + 200, 1000 * id + 300, "k");
  }
  const Correlation& result = Run();
  EXPECT_EQ(result.counts.launches_matched, 70u);
  EXPECT_EQ(result.counts.stacks_missing, 10u);
  for (size_t i = 0; i < 70; ++i) {
    const Launch& launch = LaunchOf(i);
    EXPECT_EQ(launch.correlation_id, i + 1);
    EXPECT_EQ(launch.has_stack, (i + 1) % 7 != 0);
    if (launch.has_stack) {
      EXPECT_EQ(trace_->model.tables->Node(launch.stack).frame.address, i + 1);
    }
  }
}

TEST_F(CorrelateTest, ASynchronizationIsOnTheDeviceOfItsContext) {
  builder_.AddKernel(1, 1, 1000, 1100, "k").device_id = 3;
  Synchronization& wait = builder_.events.synchronizations.emplace_back();
  wait.instance = {1};
  wait.context_id = 1;
  wait.start_ns = 1000;
  wait.end_ns = 1100;
  const Correlation& result = Run();
  EXPECT_EQ(result.work[1].kind, WorkKind::kSynchronization);
  EXPECT_EQ(result.work[1].device_id, 3u);
}

TEST_F(CorrelateTest, ACapturedLaunchOwesNothing) {
  builder_.Call(1, 1, kLaunchKernel, 1000, 1100, 1).graph_nodes = 1;
  builder_.Call(1, 2, kMemcpy, 2000, 2100, 1).graph_nodes = 1;  // no launch
  ApiCall& failed = builder_.Call(1, 3, kLaunchKernel, 3000, 3100, 1);
  failed.graph_nodes = 1;
  failed.return_value = 900;
  builder_.Call(1, 4, kLaunchKernel, 4000, 4100, 1).graph_nodes = 1;  // yet a record came
  builder_.AddKernel(1, 4, 4200, 4300, "k");
  const Correlation& result = Run();
  EXPECT_EQ(LaunchStatusOf(result.launches[0]), LaunchStatus::kCaptured);
  EXPECT_EQ(LaunchStatusOf(result.launches[1]), LaunchStatus::kNoLaunch);
  EXPECT_EQ(result.counts.launches_captured, 1u);
  EXPECT_EQ(result.counts.launches_failed, 1u);
  EXPECT_EQ(result.counts.launches_matched, 1u);
  EXPECT_EQ(result.counts.launches_seen, 1u);
  EXPECT_EQ(result.counts.launches_pending, 0u);
}

// Seen = matched + pending + lost, and only losses of the launch's own instance explain it.
TEST_F(CorrelateTest, CountedLossesExplainLaunchesWithoutARecord) {
  for (uint32_t id = 1; id <= 10; ++id)
    builder_.Call(1, id, kLaunchKernel, 1000 * id, 1000 * id, 1);
  for (uint32_t id = 1; id <= 4; ++id) builder_.AddKernel(1, id, 1000 * id + 5, 1000 * id + 6, "k");
  for (uint32_t id = 1; id <= 2; ++id) builder_.Call(2, id, kLaunchKernel, 1000 * id, 1000 * id, 1);
  const auto lose = [&](const char* name, uint64_t count, uint64_t instance, uint32_t pid) {
    Loss& loss = builder_.Lose(name, count);
    loss.pid = pid;
    loss.instance = {instance};
  };
  lose("cupti_dropped", 2, 1, 0);
  lose("wire_ring_full", 1, 1, 0);
  lose("cupti_not_delivered", 100, 2, 0);  // more than its launches
  lose("sample_ring_full", 100, 1, 0);     // no GPU records
  lose("wire_torn", 100, 0, 77);           // of another process
  lose("wire_invalid", 1, 0, 0);           // of nobody
  const Correlation::Counts& counts = Run().counts;
  EXPECT_EQ(counts.launches_seen, 12u);
  EXPECT_EQ(counts.launches_matched, 4u);
  EXPECT_EQ(counts.launches_lost, 6u);     // 2 + 1 + 1 of instance 1, 2 of instance 2
  EXPECT_EQ(counts.launches_pending, 2u);  // of instance 1
}

TEST_F(CorrelateTest, WorkOfAGraphNodeKnowsTheCallThatMadeIt) {
  constexpr uint64_t kMine = uint64_t{6} << 32;
  constexpr uint64_t kExecutable = uint64_t{7} << 32;
  builder_.Call(1, 1, kLaunchKernel, 1000, 1100, 1).graph_nodes = 1;
  builder_.Launch(1, 1, 1010, 500, 501, stack_);
  const auto change = [&](GraphNodeChange kind, uint64_t time_ns, uint64_t node, uint64_t original,
                          uint32_t correlation_id) {
    builder_.events.graph_nodes.push_back({.instance = {1},
                                           .time_ns = time_ns,
                                           .change = kind,
                                           .node_id = node,
                                           .original_node_id = original,
                                           .correlation_id = correlation_id});
  };
  change(GraphNodeChange::kCreated, 1050, kMine, 0, 1);
  change(GraphNodeChange::kCreated, 1060, kMine + 1, 0, 0);   // by no watched call
  change(GraphNodeChange::kCreated, 1070, kMine + 2, 0, 99);  // by a call that was lost
  for (uint64_t i = 0; i < 3; ++i) {
    change(GraphNodeChange::kCloned, 2000, kExecutable + i, kMine + i, 0);
  }
  builder_.Call(1, 9, 311, 3000, 3100, 1);
  for (uint64_t i = 0; i < 3; ++i) {
    builder_.AddKernel(1, 9, 4000, 4100, "k").graph_node_id = kExecutable + i;
  }
  builder_.AddKernel(1, 9, 4000, 4100, "k").graph_node_id = uint64_t{8} << 32;
  builder_.AddKernel(1, 9, 4000, 4100, "k");
  const Correlation& result = Run();
  EXPECT_EQ(result.work[0].origin, NodeOrigin::kKnown);
  EXPECT_EQ(result.launches[result.work[0].creation].stack, stack_);
  EXPECT_EQ(LaunchOf(0).correlation_id, 9u);
  EXPECT_EQ(result.work[1].origin, NodeOrigin::kUnknown);
  EXPECT_EQ(result.work[2].origin, NodeOrigin::kUnknown);
  EXPECT_EQ(result.work[3].origin, NodeOrigin::kBeforeRecording);
  EXPECT_EQ(result.work[4].origin, NodeOrigin::kNoNode);
  EXPECT_EQ(result.counts.node_work_without_origin, 3u);
}

}  // namespace
}  // namespace xpu
