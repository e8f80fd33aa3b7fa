#include "report/trace/probe_launches.h"

#include <optional>

#include <gtest/gtest.h>

#include "report/model/loaded_events.h"
#include "report/trace/trace.h"
#include "tests/unit/durations.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

constexpr uint32_t kRuntime = 1;    // cudaLaunchKernel
constexpr uint32_t kRuntime2 = 2;   // __cudaLaunchKernel
constexpr uint32_t kDriver = 3;     // cuLaunchKernel
constexpr uint32_t kDriverEx = 4;   // cuLaunchKernelEx
constexpr uint32_t kUserProbe = 5;  // malloc
constexpr uint32_t kCallback = 211;
using test::kSecond;

class ProbeLaunchesTest : public testing::Test {
 protected:
  ProbeLaunchesTest() {
    const auto probe = [&](uint32_t id, ProbePurpose purpose, const char* function) {
      builder_.events.probes.push_back(
          {.probe = id, .purpose = purpose, .function = builder_.Text(function), .path = {}});
    };
    probe(kRuntime, ProbePurpose::kRuntimeLaunch, "cudaLaunchKernel");
    probe(kRuntime2, ProbePurpose::kRuntimeLaunch, "__cudaLaunchKernel");
    probe(kDriver, ProbePurpose::kDriverLaunch, "cuLaunchKernel_ptsz");
    probe(kDriverEx, ProbePurpose::kDriverLaunch, "cuLaunchKernelEx");
    probe(kUserProbe, ProbePurpose::kUser, "malloc");
  }
  ProbeHit& Hit(uint32_t probe, uint64_t time_ns, bool is_return, uint32_t tid = 7) {
    ProbeHit& hit = builder_.events.probe_hits.emplace_back();
    hit.probe = probe;
    hit.time_ns = time_ns;
    hit.is_return = is_return;
    hit.pid = 7;
    hit.tid = tid;
    return hit;
  }
  // Entry with a stack of this one address, and return; no return when `end_ns` is 0.
  void Call(uint32_t probe, uint64_t start_ns, uint64_t end_ns, uint64_t address = 0x10) {
    Hit(probe, start_ns, false).stack = builder_.Stack({address});
    if (end_ns != 0) Hit(probe, end_ns, true);
  }
  // "probe start-end" of each outermost call.
  std::vector<std::string> Nested() {
    Model model = builder_.Build();
    OrderByTime(model.events);
    std::vector<std::string> calls;
    for (const ProbeCall& call : NestProbeHits(model.events)) {
      calls.push_back(std::to_string(call.probe) + " " + std::to_string(call.start_ns) + "-" +
                      std::to_string(call.end_ns));
    }
    return calls;
  }
  const Correlation& Run() {
    trace_.emplace(builder_.Build());
    return trace_->correlation;
  }
  using Calls = std::vector<std::string>;

  test::ModelBuilder builder_;
  std::optional<Trace> trace_;
};

TEST_F(ProbeLaunchesTest, ARuntimeCallAndTheDriversInItAreOne) {
  Call(kRuntime2, 90, 201);
  Call(kRuntime, 100, 200);
  Call(kDriver, 120, 180);
  Call(kDriverEx, 300, 350);  // the driver's function called by the program
  Call(kUserProbe, 400, 410);
  EXPECT_EQ(Nested(), (Calls{"2 90-201", "4 300-350"}));
}

TEST_F(ProbeLaunchesTest, ThreadsDoNotNest) {
  Call(kRuntime, 100, 200);
  Hit(kDriver, 120, false, 8);
  Hit(kDriver, 130, true, 8);
  EXPECT_EQ(Nested(), (Calls{"1 100-200", "3 120-130"}));
}

TEST_F(ProbeLaunchesTest, ReturnsMayBeMissing) {
  Call(kRuntime, 100, 0);
  Call(kDriver, 120, 180);  // in it
  Call(kDriver, 300, 380);  // a launch has one: this is another
  Call(kRuntime, 500, 0);
  Call(kRuntime, 600, 0);  // never calls itself
  Call(kDriver, 620, 0);
  Call(kDriver, 700, 0);
  Call(kRuntime, 800, 0);
  Call(kDriver, 800 + 2 * kSecond, 0);  // too late
  EXPECT_EQ(Nested(), (Calls{"1 100-180", "3 300-380", "1 500-500", "1 600-620", "3 700-700",
                             "1 800-800", "3 2000000800-2000000800"}));
}

TEST_F(ProbeLaunchesTest, AReturnWithoutAnEntryIsNothing) {
  Hit(kRuntime, 50, true);
  Call(kRuntime, 100, 200);
  Hit(kRuntime, 210, true);
  EXPECT_EQ(Nested(), (Calls{"1 100-200"}));
}

TEST_F(ProbeLaunchesTest, BecomeLaunchesOfTheirOwn) {
  Call(kRuntime, 100, 200, 0x10);
  Call(kDriver, 120, 180, 0x20);
  builder_.events.probe_hits[0].kernel = 0x1234;
  builder_.events.probe_hits[1].return_value = 9;
  Call(kDriver, 300, 0, 0x30);
  const Correlation& result = Run();
  ASSERT_EQ(result.launches.size(), 2u);
  const Launch& outer = result.launches[0];
  EXPECT_EQ(ApiNameOf(trace_->api_names, outer), "cudaLaunchKernel");
  EXPECT_EQ(outer.domain, ApiDomain::kRuntime);
  EXPECT_EQ(outer.stack_match, MatchKind::kByNesting);
  EXPECT_EQ(MatchText(outer.stack_match), "by nesting");
  EXPECT_EQ(trace_->model.tables->Node(outer.stack).frame.address, 0x10u);
  EXPECT_EQ(outer.pid, 7u);
  EXPECT_EQ(outer.tid, 7u);
  EXPECT_EQ(outer.start_ns, 100u);
  EXPECT_EQ(outer.end_ns, 200u);
  EXPECT_EQ(outer.kernel, 0x1234u);
  EXPECT_EQ(outer.return_value, 9);
  EXPECT_EQ(ApiNameOf(trace_->api_names, result.launches[1]), "cuLaunchKernel");
  EXPECT_EQ(LaunchStatusOf(outer), LaunchStatus::kFailed);
  EXPECT_EQ(result.counts.launches_probed, 1u);
  EXPECT_EQ(result.counts.launches_probed_failed, 1u);
  EXPECT_EQ(result.counts.launches_failed, 0u);
  EXPECT_EQ(result.counts.launches_seen, 0u);
  EXPECT_EQ(result.counts.launches_pending, 0u);
  EXPECT_FALSE(IsPending(outer));
}

// GPU records and calls by CUPTI, stacks by probes: each call gets the stack of its thread then.
TEST_F(ProbeLaunchesTest, BelongToTheCallsThatTheyAreIn) {
  builder_.events.gpu_processes.push_back({.time_ns = 1,
                                           .instance = {1},
                                           .pid = 7,
                                           .namespace_pid = 7,
                                           .cupti_path = {},
                                           .detail = {}});
  builder_.Callback(1, ApiDomain::kRuntime, kCallback, "cudaLaunchKernel_v7000");
  builder_.Call(1, 1, kCallback, 1'010, 1'090, 7);  // within the probed call
  Call(kRuntime, 1'000, 1'100, 0x10);
  builder_.Call(1, 2, kCallback, 2'000, 2'100, 7);  // around the driver's function
  Call(kDriver, 2'020, 2'080, 0x20);
  builder_.Call(1, 3, kCallback, 3'010, 3'090, 7);  // the return was not seen
  Call(kRuntime, 3'000, 0, 0x30);
  builder_.Call(1, 4, kCallback, 4'010, 4'090, 7);  // has one of its id
  builder_.Launch(1, 4, 4'020, 7, 7, builder_.Stack({0x99}));
  Call(kRuntime, 4'000, 4'100, 0x40);
  Call(kRuntime, 5'000, 5'100, 0x50);               // its call was lost
  builder_.Call(1, 6, kCallback, 6'010, 6'090, 7);  // its probe was lost
  const Correlation& result = Run();
  ASSERT_EQ(result.launches.size(), 6u);
  const auto stack = [&](size_t i) {
    return trace_->model.tables->Node(result.launches[i].stack).frame.address;
  };
  EXPECT_EQ(stack(0), 0x10u);
  EXPECT_EQ(stack(1), 0x20u);
  EXPECT_EQ(stack(2), 0x30u);
  EXPECT_EQ(result.launches[2].stack_match, MatchKind::kByNesting);
  EXPECT_EQ(stack(3), 0x99u);
  EXPECT_EQ(result.launches[3].stack_match, MatchKind::kById);
  EXPECT_FALSE(result.launches[4].stack);
  EXPECT_EQ(result.launches[4].correlation_id, 6u);
  EXPECT_EQ(stack(5), 0x50u);
  EXPECT_EQ(result.launches[5].probe, kRuntime);
  EXPECT_EQ(result.counts.stacks_by_nesting, 3u);
  EXPECT_EQ(result.counts.stacks_missing, 1u);
  EXPECT_EQ(result.counts.launches_pending, 5u);  // those that CUPTI saw
  EXPECT_EQ(result.counts.launches_probed, 1u);
}

// Probed launches have no id: a record without one is not theirs.
TEST_F(ProbeLaunchesTest, NeverMatchByAnIdOfZero) {
  Call(kRuntime, 100, 200);
  builder_.AddKernel(0, 0, 150, 160, "k");
  const Correlation& result = Run();
  EXPECT_EQ(result.work[0].launch, GpuWork::kNoLaunch);
  EXPECT_EQ(result.counts.kernels_without_launch, 1u);
}

}  // namespace
}  // namespace xpu
