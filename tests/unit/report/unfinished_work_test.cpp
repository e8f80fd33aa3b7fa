#include "report/query/unfinished_work.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "format/cuda_faults.h"
#include "report/analysis/filter.h"
#include "report/query/ledger.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

constexpr uint32_t kDeviceSynchronize = 165;
constexpr uint32_t kGraphLaunch = 311;
constexpr int32_t kIllegalAddress = 700;
constexpr uint64_t kSecond = 1'000'000'000;

// A program that launches kernels on streams of one context; call N begins at N milliseconds.
class UnfinishedTest : public testing::Test {
 protected:
  UnfinishedTest() {
    builder_.Process(ProcessEventKind::kExec, 1, 10, 10, "app");
    builder_.Map(1, 10, test::kText, 0x1000, 0, "/bin/app");
    for (const auto& [id, name] : {std::pair{test::kLaunchKernel, "cudaLaunchKernel_v7000"},
                                   std::pair{kDeviceSynchronize, "cudaDeviceSynchronize_v3020"},
                                   std::pair{kGraphLaunch, "cudaGraphLaunch_v10000"}}) {
      builder_.Callback(1, ApiDomain::kRuntime, id, name);
    }
    SetState(InjectState::kActive);
  }

  GpuProcess& SetState(InjectState state) {
    GpuProcess process{};
    process.time_ns = 2;
    process.instance = InstanceId{1};
    process.state = state;
    process.pid = 10;
    process.times_on_host = true;
    return builder_.events.gpu_processes.emplace_back(process);
  }
  static uint64_t At(uint32_t id) { return id * 1'000'000ull; }
  ApiCall& Call(uint32_t id, uint32_t callback_id) {
    builder_.Launch(1, id, At(id), 10, 10, builder_.Stack({test::kText + callback_id}));
    return builder_.Call(1, id, callback_id, At(id), At(id) + 1'000, 10);
  }
  // Launches a kernel; `ns`: how long it ran, 0: it has no times.
  Kernel& Run(uint32_t id, uint32_t stream, uint64_t ns = 1'000, std::string_view name = "k") {
    Call(id, test::kLaunchKernel);
    Kernel& kernel = builder_.AddKernel(1, id, ns == 0 ? 0 : At(id) + 2'000,
                                        ns == 0 ? 0 : At(id) + 2'000 + ns, name);
    kernel.context_id = 1;
    kernel.stream_id = stream;
    return kernel;
  }
  void Synchronize(uint32_t id, int32_t result = 0) {
    Call(id, kDeviceSynchronize).return_value = result;
    Synchronization wait{};
    wait.instance = InstanceId{1};
    wait.start_ns = At(id);
    wait.end_ns = At(id) + 1'000;
    wait.type = 4;  // of the context
    wait.correlation_id = id;
    wait.context_id = 1;
    wait.return_value = static_cast<uint32_t>(result);
    builder_.events.synchronizations.push_back(wait);
  }
  std::vector<UnfinishedProcess> Find() {
    analysis_ = std::make_unique<Analysis>(builder_.Build());
    return FindUnfinished(*analysis_);
  }
  // The correlation ids of the candidates of a stream.
  std::vector<uint32_t> Candidates(const UnfinishedStream& stream) const {
    std::vector<uint32_t> ids;
    for (size_t i = 0; i < stream.candidates; ++i) {
      ids.push_back(analysis_->correlation.work[stream.work[i]].correlation_id);
    }
    return ids;
  }
  std::string Text() {
    analysis_ = std::make_unique<Analysis>(builder_.Build());
    return UnfinishedText(*analysis_);
  }

  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
};

using Ids = std::vector<uint32_t>;

TEST_F(UnfinishedTest, FirstKernelWithoutTimesIsTheOneThatFaulted) {
  Run(1, 7);
  Run(2, 7, 0, "culprit");
  Run(3, 7, 0);
  Synchronize(4, kIllegalAddress);
  const std::vector<UnfinishedProcess> found = Find();
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].streams.size(), 1u);
  EXPECT_EQ(Candidates(found[0].streams[0]), Ids{2});
  EXPECT_EQ(found[0].streams[0].work.size(), 2u);
  EXPECT_EQ(CountCandidates(found[0]), 1u);
  EXPECT_EQ(PendingNs(*analysis_, found[0], 1), At(4) + 1'000 - At(2) - 1'000);
}

TEST_F(UnfinishedTest, TimeRangeWithoutLaunchesOfTheProcessKeepsIt) {
  Run(1, 7);
  Run(2, 7, 0, "culprit");
  Synchronize(4, kIllegalAddress);
  ASSERT_EQ(Find().size(), 1u);
  FilterOptions options;
  options.time = {At(10), At(20)};
  analysis_->shown = SelectPart(options, *analysis_).value();
  EXPECT_EQ(analysis_->Launches().size(), 0u);
  EXPECT_EQ(FindUnfinished(*analysis_).size(), 1u);
  FilterOptions others = options;
  others.pids = {77};
  analysis_->shown = SelectPart(others, *analysis_).value();
  EXPECT_EQ(FindUnfinished(*analysis_).size(), 0u);
  options.kernel = "no kernel";
  analysis_->shown = SelectPart(options, *analysis_).value();
  EXPECT_EQ(FindUnfinished(*analysis_).size(), 0u);
}

TEST_F(UnfinishedTest, AdviceOnMissingTimesNamesTheFault) {
  Run(1, 7);
  Run(2, 7, 0, "culprit");
  Synchronize(4, kIllegalAddress);
  Find();
  const std::vector<LedgerEntry> ledger = BuildLedger(*analysis_);
  const auto entry = std::find_if(ledger.begin(), ledger.end(), [](const LedgerEntry& one) {
    return one.name == "invalid_time";
  });
  ASSERT_NE(entry, ledger.end());
  EXPECT_EQ(entry->advice,
            "The work failed or had not ended: xpu-report --top --table unfinished_sum.");
}

TEST_F(UnfinishedTest, TextNamesKernelCallerAndError) {
  Run(1, 7);
  Run(2, 7, 0, "culprit").grid_x = 3;
  Synchronize(4, kIllegalAddress);
  const std::string text = Text();
  EXPECT_TRUE(text.starts_with("cudaDeviceSynchronize, called by ")) << text;
  EXPECT_NE(text.find("returned error 700, an illegal memory access. The work that failed is "
                      "`culprit`, grid 3x"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("pending for 2 ms when the error was returned, and nothing of its stream "
                      "followed"),
            std::string::npos)
      << text;
}

TEST_F(UnfinishedTest, WorkBeforeASuccessfulSynchronizationHasEnded) {
  Run(1, 7);
  Run(2, 7, 0);
  Synchronize(3);
  Run(4, 7, 0, "culprit");
  Synchronize(5, kIllegalAddress);
  const std::vector<UnfinishedProcess> found = Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(Candidates(found[0].streams[0]), Ids{4});
}

TEST_F(UnfinishedTest, WorkBeforeTimedWorkOfItsStreamHasEnded) {
  Run(1, 7, 0);
  Run(2, 7);
  Run(3, 7, 0);
  Synchronize(5, kIllegalAddress);
  EXPECT_EQ(Candidates(Find()[0].streams[0]), Ids{3});
}

TEST_F(UnfinishedTest, TimesThatAFaultCanTakeLeaveAllCandidates) {
  builder_.events.gpu_processes[0].times_on_host = false;
  Run(1, 7, 0);
  Run(2, 7, 0, "culprit");
  Run(3, 7, 0);
  Synchronize(5, kIllegalAddress);
  const std::vector<UnfinishedProcess> found = Find();
  EXPECT_EQ(Candidates(found[0].streams[0]), (Ids{1, 2, 3}));
  EXPECT_NE(UnfinishedText(*analysis_).find("one of 3 operations"), std::string::npos);
}

TEST_F(UnfinishedTest, OldestOfEachStreamIsACandidate) {
  Run(1, 7, 0);
  Run(2, 8);
  Run(3, 9, 0);
  Run(4, 9, 0);
  Synchronize(5, kIllegalAddress);
  const std::vector<UnfinishedProcess> found = Find();
  ASSERT_EQ(found[0].streams.size(), 2u);
  EXPECT_EQ(Candidates(found[0].streams[0]), Ids{1});
  EXPECT_EQ(Candidates(found[0].streams[1]), Ids{3});
  EXPECT_NE(UnfinishedText(*analysis_).find("(2 streams had unfinished work)"), std::string::npos);
}

TEST_F(UnfinishedTest, KernelsThatOverlapInAStreamAreAllCandidates) {
  Run(1, 7, 5'000'000);
  Run(2, 7);  // begins before the first has ended
  Run(3, 7, 0);
  Run(4, 7, 0);
  Synchronize(5, kIllegalAddress);
  EXPECT_EQ(Candidates(Find()[0].streams[0]), (Ids{3, 4}));
}

TEST_F(UnfinishedTest, NodesOfTheReplayThatStoppedAreCandidates) {
  for (uint32_t node = 1; node <= 3; ++node) {
    Kernel& kernel = Run(1, 7, node == 1 ? 1'000 : 0);
    kernel.graph_node_id = uint64_t{5} << 32 | node;
    if (node > 1) builder_.events.api_calls.pop_back();
  }
  Run(2, 7, 0);
  Synchronize(5, kIllegalAddress);
  const std::vector<UnfinishedProcess> found = Find();
  EXPECT_EQ(Candidates(found[0].streams[0]), (Ids{1, 1}));
}

TEST_F(UnfinishedTest, NodesOfAReplayAreNamedByTheCallsThatMadeThem) {
  for (uint32_t id = 1; id <= 3; ++id) {
    Call(id, test::kLaunchKernel).graph_nodes = 1;
    GraphNode node{};
    node.instance = InstanceId{1};
    node.time_ns = At(id);
    node.change = GraphNodeChange::kCreated;
    node.node_id = uint64_t{1} << 32 | id;
    node.graph_id = 1;
    node.correlation_id = id;
    builder_.events.graph_nodes.push_back(node);
    node.change = GraphNodeChange::kCloned;
    node.original_node_id = node.node_id;
    node.node_id = uint64_t{2} << 32 | id;
    node.graph_id = 2;
    node.correlation_id = 0;
    node.time_ns = At(4);
    builder_.events.graph_nodes.push_back(node);
  }
  Call(5, kGraphLaunch);
  GraphLaunch replay{};
  replay.instance = InstanceId{1};
  replay.correlation_id = 5;
  replay.context_id = 1;
  replay.graph_id = 2;
  builder_.events.graph_launches.push_back(replay);
  Synchronize(6, kIllegalAddress);
  const std::vector<UnfinishedProcess> found = Find();
  ASSERT_EQ(CountCandidates(found[0]), 1u);
  const GpuWork work = analysis_->correlation.work[found[0].streams[0].work[0]];
  const std::vector<LaunchGroup> creations = GraphCreations(*analysis_).Of(work);
  ASSERT_EQ(creations.size(), 1u);  // one stack
  EXPECT_EQ(creations[0].count, 3u);
}

TEST_F(UnfinishedTest, WorkThatIsPendingForLongIsNamedWithTheCallThatWaits) {
  Run(1, 7);
  Run(2, 7, 0, "spin");
  builder_.Launch(1, 3, At(3), 10, 10, builder_.Stack({test::kText + 1})).callback_id =
      kDeviceSynchronize;
  builder_.End(5 * kSecond);
  const std::string text = Text();
  EXPECT_TRUE(text.starts_with("The GPU had not finished `spin`")) << text;
  EXPECT_NE(text.find("pending for 4.998 s when the recording ended"), std::string::npos) << text;
  EXPECT_NE(text.find(" had not returned."), std::string::npos) << text;
}

TEST_F(UnfinishedTest, AnXidAloneIsAFault) {
  Run(1, 7);
  Run(2, 7, 0, "culprit");
  GpuDevice& gpu = builder_.events.gpu_devices.emplace_back();
  gpu.gpu = 1;
  gpu.uuid = builder_.Text("0123456789abcdef");
  Device& device = builder_.events.devices.emplace_back();
  device.instance = InstanceId{1};
  device.uuid = gpu.uuid;
  GpuFault fault{};
  fault.time_ns = At(3);
  fault.gpu = 1;
  fault.kind = 8;
  fault.code = 31;
  builder_.events.gpu_faults.push_back(fault);
  builder_.End(At(50));
  const std::string text = Text();
  EXPECT_TRUE(text.starts_with("The GPU (Xid 31) had not finished `culprit`")) << text;
}

TEST_F(UnfinishedTest, WorkLaunchedJustBeforeTheEndIsNotWorthAFinding) {
  Run(1, 7);
  Run(2, 7, 0);
  builder_.End(At(50));
  EXPECT_EQ(Text(), "");
}

// CUPTI that ran out of memory for times gives none to work that has ended.
TEST_F(UnfinishedTest, TimesThatWereLostBeforeAreNotWorkThatHangs) {
  Run(1, 7, 0);
  Synchronize(2);
  Run(3, 7, 0);
  builder_.End(5 * kSecond);
  EXPECT_EQ(Text(), "");
}

TEST_F(UnfinishedTest, LaunchesWithoutRecordsOfAKilledProgramAreCandidates) {
  Run(1, 7);
  Synchronize(2);
  for (uint32_t id = 3; id <= 5; ++id) Call(id, test::kLaunchKernel);
  builder_.Process(ProcessEventKind::kExit, 5 * kSecond, 10, 10);
  builder_.End(6 * kSecond);
  const std::string text = Text();
  EXPECT_TRUE(
      text.starts_with("The GPU had not finished one of 3 operations, pending for 4.997 s "
                       "when the program ended"))
      << text;
}

TEST_F(UnfinishedTest, LaunchesBeforeDeliveredOnesOfTheirThreadHaveLostTheirRecord) {
  Call(1, test::kLaunchKernel);
  Run(2, 7);
  builder_.Process(ProcessEventKind::kExit, 5 * kSecond, 10, 10);
  builder_.End(6 * kSecond);
  EXPECT_TRUE(Find().empty());
}

// CUPTI keeps back buffers with unfinished work of any stream.
TEST_F(UnfinishedTest, LaunchesBeforeDeliveredOnesMayBeWhatACallWaitsFor) {
  Call(1, test::kLaunchKernel);
  Run(2, 7);
  builder_.Launch(1, 3, At(3), 10, 10, builder_.Stack({test::kText})).callback_id =
      kDeviceSynchronize;
  builder_.Process(ProcessEventKind::kExit, 5 * kSecond, 10, 10);
  builder_.End(6 * kSecond);
  const std::string text = Text();
  EXPECT_TRUE(text.starts_with("The GPU had not finished the work launched by")) << text;
}

// The program that aborts at the error leaves no records but those of the synchronization.
TEST_F(UnfinishedTest, SynchronizationThatFailedSaysNothingOfTheWorkBeforeIt) {
  Run(1, 7);
  Synchronize(2);
  Call(3, test::kLaunchKernel);
  Synchronize(4, kIllegalAddress);
  const std::string text = Text();
  EXPECT_NE(text.find("The work that failed, or was lost, was launched by"), std::string::npos)
      << text;
}

// CUPTI delivers nothing while there is always something unfinished in its buffer.
TEST_F(UnfinishedTest, LaunchesWithoutRecordsOfAWorkingProgramAreNoFinding) {
  for (uint32_t id = 1; id <= 3000; id += 100) Call(id, test::kLaunchKernel);
  builder_.Process(ProcessEventKind::kExit, 3 * kSecond, 10, 10);
  builder_.End(3 * kSecond);
  EXPECT_EQ(Text(), "");
}

TEST_F(UnfinishedTest, LongQueueThatAdvancesIsNotStuck) {
  Run(1, 7, 2 * kSecond);
  for (uint32_t id = 2; id <= 10; ++id) Run(id, 7, 0);
  builder_.End(2 * kSecond + At(50));
  EXPECT_EQ(Text(), "");
}

TEST_F(UnfinishedTest, LaunchesWithoutRecordsAfterAnOrderlyEndAreLosses) {
  SetState(InjectState::kFinished);
  Call(3, test::kLaunchKernel);
  builder_.End(6 * kSecond);
  EXPECT_TRUE(Find().empty());
}

TEST_F(UnfinishedTest, ProgramThatEndsInOrderHasNothing) {
  Run(1, 7);
  Synchronize(2);
  builder_.End(At(50));
  EXPECT_TRUE(Find().empty());
}

TEST(FaultMeaning, OnlyErrorsThatEndAContext) {
  EXPECT_EQ(FaultMeaning(716), "a misaligned address");
  EXPECT_EQ(FaultMeaning(0), "");
  EXPECT_EQ(FaultMeaning(2), "");    // out of memory
  EXPECT_EQ(FaultMeaning(600), "");  // not ready
}

}  // namespace
}  // namespace xpu
