#include "report/ranks/collectives.h"

#include <gtest/gtest.h>

#include "report/analysis/analysis.h"
#include "report/ranks/communication.h"
#include "report/ranks/late_ranks.h"
#include "tests/unit/durations.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

using test::kUs;

constexpr uint64_t kSchema = 1 << 24;
constexpr uint64_t kCommunicator = 0xc0ffee;

// Ranks 0, 1, ... are the instances 1, 2, ... with the pids 101, 102, ...
class CollectivesTest : public testing::Test {
 protected:
  void AddRanks(uint32_t count) {
    for (uint32_t rank = 0; rank < count; ++rank) {
      const uint32_t pid = 101 + rank;
      GpuProcess& gpu = builder_.events.gpu_processes.emplace_back();
      gpu.time_ns = 1;
      gpu.instance = {rank + 1};
      gpu.pid = gpu.namespace_pid = pid;
      RankInfo& info = builder_.events.rank_infos.emplace_back();
      info.instance = gpu.instance;
      info.pid = pid;
      info.rank = static_cast<int32_t>(rank);
      builder_.Process(ProcessEventKind::kExec, 1, pid, pid, "train");
      builder_.Clock(rank + 1, 0, {1});
      Field(rank, 0, "NCCL communicator ID");
      Field(rank, 1, "Message size [bytes]");
      Field(rank, 2, "No. of ranks");
    }
  }
  void Field(uint32_t rank, uint32_t number, std::string_view name) {
    NvtxSchemaEntry& entry = builder_.events.nvtx_schema_entries.emplace_back();
    entry.instance = {rank + 1};
    entry.domain = 1;
    entry.schema = number == 2 ? kSchema + 1 : kSchema;
    entry.entry = number;
    entry.name = builder_.Text(name);
    entry.type = 18;  // 64 bits
    entry.offset = 8 * number;
    if (number != 0) return;
    NvtxSchemaEntry& same = builder_.events.nvtx_schema_entries.emplace_back(entry);
    same.schema = kSchema + 1;
  }

  void Push(uint32_t rank, uint64_t at_ns, std::string_view call, uint64_t bytes,
            uint64_t communicator = kCommunicator) {
    NvtxEvent& event = builder_.events.nvtx_events.emplace_back();
    event.instance = {rank + 1};
    event.time_ns = at_ns;
    event.kind = NvtxKind::kPush;
    event.tid = 101 + rank;
    event.domain = 1;
    event.text = builder_.Text(call);
    event.payload_type = NvtxPayload::kExtended;
    event.payload_schema = call == "ncclCommInitRank" ? kSchema + 1 : kSchema;
    const uint64_t payload[] = {communicator, bytes, bytes};
    event.payload_data = builder_.Text({reinterpret_cast<const char*>(payload), sizeof(payload)});
  }
  void Pop(uint32_t rank, uint64_t at_ns) {
    NvtxEvent& event = builder_.events.nvtx_events.emplace_back();
    event.instance = {rank + 1};
    event.time_ns = at_ns;
    event.kind = NvtxKind::kPop;
    event.tid = 101 + rank;
    event.domain = 1;
  }
  void Kernel(uint32_t rank, uint64_t launch_ns, uint64_t start_ns, uint64_t end_ns,
              std::string_view name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL()") {
    ++correlation_;
    builder_.Call(rank + 1, correlation_, test::kLaunchKernel, launch_ns, launch_ns + kUs,
                  101 + rank);
    builder_.AddKernel(rank + 1, correlation_, start_ns, end_ns, name).stream_id = 20;
  }
  // The call, with its kernel inside.
  void Call(uint32_t rank, uint64_t start_ns, uint64_t end_ns, uint64_t bytes = 1000,
            std::string_view call = "ncclAllReduce", uint64_t communicator = kCommunicator) {
    Push(rank, start_ns - 10 * kUs, call, bytes, communicator);
    Kernel(rank, start_ns - 5 * kUs, start_ns, end_ns);
    Pop(rank, start_ns - 2 * kUs);
  }

  const Collectives& Find() {
    analysis_ = std::make_unique<Analysis>(builder_.Build());
    found_ = FindCollectives(analysis_->trace());
    return found_;
  }

  test::ModelBuilder builder_;
  uint32_t correlation_ = 0;
  std::unique_ptr<Analysis> analysis_;
  Collectives found_;
};

TEST_F(CollectivesTest, AreMatchedByCommunicatorAndOrder) {
  AddRanks(2);
  for (uint32_t rank = 0; rank < 2; ++rank) Push(rank, 10, "ncclCommInitRank", 2), Pop(rank, 20);
  // Rank 1 calls later, in the same order.
  Call(0, 100 * kUs, 190 * kUs);
  Call(0, 200 * kUs, 290 * kUs, 64, "ncclAllGather");
  Call(1, 150 * kUs, 191 * kUs);
  Call(1, 180 * kUs, 292 * kUs, 64, "ncclAllGather");
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 2u);
  const Collective& reduce = found.all[0];
  EXPECT_EQ(reduce.operation, "AllReduce");
  EXPECT_EQ(reduce.communicator, kCommunicator);
  EXPECT_EQ(reduce.sequence, 0u);
  EXPECT_EQ(reduce.bytes, 1000u);
  EXPECT_EQ(reduce.ranks, 2u);
  EXPECT_TRUE(reduce.is_complete());
  EXPECT_EQ(reduce.parts[reduce.last].rank, 1u);
  EXPECT_EQ(reduce.waited_ns(), 50 * kUs);
  EXPECT_EQ(reduce.delay_ns(), 50 * kUs);
  EXPECT_EQ(reduce.transfer_ns(), 41 * kUs);
  const Collective& gather = found.all[1];
  EXPECT_EQ(gather.operation, "AllGather");
  EXPECT_EQ(gather.sequence, 1u);
  EXPECT_EQ(gather.parts[gather.last].rank, 0u);
}

TEST_F(CollectivesTest, CommunicatorsCountOnTheirOwn) {
  AddRanks(2);
  Call(0, 100 * kUs, 150 * kUs, 8, "ncclAllReduce", 1);
  Call(0, 200 * kUs, 250 * kUs, 8, "ncclAllReduce", 2);
  Call(1, 110 * kUs, 150 * kUs, 8, "ncclAllReduce", 2);
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 2u);
  EXPECT_EQ(found.all[0].communicator, 1u);
  EXPECT_EQ(found.all[0].arrived, 1u);
  EXPECT_EQ(found.all[1].communicator, 2u);
  EXPECT_EQ(found.all[1].arrived, 2u);
  EXPECT_EQ(found.all[1].sequence, 0u);
}

TEST_F(CollectivesTest, GroupedCallsShareAKernel) {
  AddRanks(1);
  Push(0, 10 * kUs, "ncclAllReduce", 1), Pop(0, 11 * kUs);
  Push(0, 12 * kUs, "ncclAllReduce", 2), Pop(0, 13 * kUs);
  Kernel(0, 20 * kUs, 30 * kUs, 40 * kUs);
  Call(0, 100 * kUs, 150 * kUs, 3);
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 3u);
  EXPECT_TRUE(found.all[0].is_grouped());
  EXPECT_TRUE(found.all[1].is_grouped());
  EXPECT_EQ(found.all[0].parts[0].work, found.all[1].parts[0].work);
  EXPECT_FALSE(found.all[2].is_grouped());
  EXPECT_EQ(found.unmatched_kernels, 0u);
}

TEST_F(CollectivesTest, AGroupOfTwoCommunicatorsHasAKernelOfEach) {
  AddRanks(1);
  Push(0, 10 * kUs, "ncclAllReduce", 1, 1), Pop(0, 11 * kUs);
  Push(0, 12 * kUs, "ncclAllReduce", 2, 2), Pop(0, 13 * kUs);
  Kernel(0, 20 * kUs, 30 * kUs, 40 * kUs);
  Kernel(0, 22 * kUs, 50 * kUs, 60 * kUs);
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 2u);
  EXPECT_EQ(found.all[0].communicator, 1u);
  EXPECT_EQ(found.all[0].last_arrival_ns, 30 * kUs);
  EXPECT_EQ(found.all[1].last_arrival_ns, 50 * kUs);
  EXPECT_FALSE(found.all[0].is_grouped());
}

TEST_F(CollectivesTest, ACallWhoseKernelIsLostTakesNoOther) {
  AddRanks(1);
  Push(0, 10 * kUs, "ncclAllReduce", 1), Pop(0, 11 * kUs);
  Call(0, 100 * kUs, 150 * kUs, 2);
  Push(0, 200 * kUs, "ncclAllReduce", 3), Pop(0, 201 * kUs);
  Kernel(0, 202 * kUs, 210 * kUs, 220 * kUs);
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 3u);
  EXPECT_EQ(found.all[0].bytes, 2u);
  EXPECT_EQ(found.all[1].bytes, 3u);
  EXPECT_FALSE(found.all[1].is_grouped());
  EXPECT_EQ(found.all[2].bytes, 1u);
  EXPECT_EQ(found.all[2].arrived, 0u);
}

TEST_F(CollectivesTest, CallsThatAreMissingOnARankAreSkipped) {
  AddRanks(2);
  for (uint64_t i = 1; i <= 20; ++i) {
    Call(0, i * 100 * kUs, (i * 100 + 50) * kUs);
    if (i < 7 || i > 11) Call(1, i * 100 * kUs + 20, (i * 100 + 50) * kUs + 30);
  }
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 20u);
  for (uint64_t i = 1; i <= 20; ++i) {
    const bool is_missing = i >= 7 && i <= 11;
    EXPECT_EQ(found.all[i - 1].arrived, is_missing ? 1u : 2u) << i;
    EXPECT_EQ(found.all[i - 1].end_ns, (i * 100 + 50) * kUs + (is_missing ? 0 : 30)) << i;
  }
}

TEST_F(CollectivesTest, WithoutNvtxByOrder) {
  AddRanks(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Kernel(rank, 90 * kUs + rank, 100 * kUs + rank, 150 * kUs);
    Kernel(rank, 190 * kUs, 200 * kUs, 250 * kUs, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL()");
    Kernel(rank, 290 * kUs, 300 * kUs, 350 * kUs, "ncclDevKernel_SendRecv()");
    Kernel(rank, 390 * kUs, 400 * kUs, 450 * kUs, "some_kernel()");
  }
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 2u);
  EXPECT_EQ(found.all[0].match, CollectiveMatch::kByOrder);
  EXPECT_EQ(found.all[0].operation, "AllReduce");
  EXPECT_EQ(found.all[1].operation, "ReduceScatter");
  EXPECT_EQ(found.all[1].arrived, 2u);
  EXPECT_EQ(found.all[1].bytes, 0u);
  EXPECT_EQ(found.unmatched_kernels, 2u);
}

TEST_F(CollectivesTest, RanksThatCallOtherSizesDisagree) {
  AddRanks(2);
  Call(0, 100 * kUs, 150 * kUs, 8);
  Call(1, 100 * kUs, 150 * kUs, 16);
  EXPECT_FALSE(Find().all[0].agrees);
}

TEST_F(CollectivesTest, CommunicationAndComputationOverlap) {
  AddRanks(2);
  Call(0, 100 * kUs, 200 * kUs);
  Kernel(0, 80 * kUs, 90 * kUs, 130 * kUs, "gemm()");
  Kernel(0, 140 * kUs, 180 * kUs, 260 * kUs, "gemm()");
  Kernel(1, 80 * kUs, 90 * kUs, 130 * kUs, "gemm()");
  Analysis analysis(builder_.Build());
  const std::vector<Communication> rows = FindCommunication(analysis, {}, false);
  ASSERT_EQ(rows.size(), 1u);  // the second rank does not communicate
  EXPECT_EQ(rows[0].rank, 0u);
  EXPECT_EQ(rows[0].steps, 0u);
  EXPECT_EQ(rows[0].duration_ns, 170 * kUs);
  EXPECT_EQ(rows[0].communication_ns, 100 * kUs);
  EXPECT_EQ(rows[0].computation_ns, 120 * kUs);
  EXPECT_EQ(rows[0].both_ns, 50 * kUs);
  EXPECT_EQ(rows[0].exposed_ns(), 50 * kUs);
}

TEST_F(CollectivesTest, CommunicationOfSteps) {
  AddRanks(1);
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t at_ns = (i + 1) * 1000 * kUs;
    Push(0, at_ns, "step", 0);
    Call(0, at_ns + 100 * kUs, at_ns + (200 + 10 * i) * kUs);
    Pop(0, at_ns + 500 * kUs);
  }
  Analysis analysis(builder_.Build());
  const StepDefinition steps{.kind = StepDefinition::Kind::kNvtx, .pattern = "step"};
  const std::vector<Communication> each = FindCommunication(analysis, steps, true);
  ASSERT_EQ(each.size(), 3u);
  EXPECT_EQ(each[2].step, 2u);
  EXPECT_EQ(each[2].communication_ns, 120 * kUs);
  const std::vector<Communication> sum = FindCommunication(analysis, steps, false);
  ASSERT_EQ(sum.size(), 1u);
  EXPECT_EQ(sum[0].steps, 3u);
  EXPECT_EQ(sum[0].communication_ns, 330 * kUs);
  EXPECT_EQ(sum[0].both_ns, 0u);
}

TEST(Bandwidth, AsNcclTestsDefinesIt) {
  const Bandwidth reduce = BandwidthOf("AllReduce", 8'000'000, 4, 1'000'000);
  EXPECT_DOUBLE_EQ(reduce.algorithm, 8);
  EXPECT_DOUBLE_EQ(reduce.bus, 12);
  const Bandwidth gather = BandwidthOf("AllGather", 2'000'000, 4, 1'000'000);
  EXPECT_DOUBLE_EQ(gather.algorithm, 8);
  EXPECT_DOUBLE_EQ(gather.bus, 6);
  EXPECT_DOUBLE_EQ(BandwidthOf("ReduceScatter", 2'000'000, 4, 1'000'000).bus, 6);
  EXPECT_DOUBLE_EQ(BandwidthOf("Broadcast", 2'000'000, 4, 1'000'000).bus, 2);
  EXPECT_DOUBLE_EQ(BandwidthOf("AllReduce", 0, 4, 1'000'000).bus, 0);
}

TEST(Operations, OfCallsAndKernels) {
  EXPECT_EQ(OperationOfCall("ncclReduceScatter"), "ReduceScatter");
  EXPECT_EQ(OperationOfCall("ncclBcast"), "Broadcast");
  EXPECT_EQ(OperationOfCall("ncclCommInitRank"), "");
  EXPECT_EQ(OperationOfCall("AllReduce"), "");
  EXPECT_EQ(OperationOfKernel("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL"), "ReduceScatter");
  EXPECT_EQ(OperationOfKernel("ncclKernel_Reduce_RING_LL_Sum_float"), "Reduce");
  EXPECT_EQ(OperationOfKernel("ncclDevKernel_Generic_4"), "Group");
  EXPECT_TRUE(IsNcclKernel("_Z28ncclDevKernel_Broadcast_RING24ncclDevKernelArgsStorage"));
  EXPECT_FALSE(IsNcclKernel("elementwise_kernel"));
}

TEST_F(CollectivesTest, RanksThatDidNotCallTheLastCollectiveAreNamedWithWhatTheyDid) {
  AddRanks(3);
  for (uint32_t rank = 0; rank < 3; ++rank) Call(rank, 100 * kUs, 150 * kUs);
  for (const uint32_t rank : {0, 2}) Push(rank, 200 * kUs, "ncclAllReduce", 1000);
  builder_.Map(1, 102, test::kText, 0x1000, 0, "/bin/train");
  builder_.Sample(9'000'000 * kUs, 102, 102, builder_.Stack({test::kText}));
  builder_.End(10'000'000 * kUs);
  const Collectives& found = Find();
  const std::vector<StuckCollective> stuck = FindStuckCollectives(found);
  ASSERT_EQ(stuck.size(), 1u);
  EXPECT_EQ(found.all[stuck[0].collective].sequence, 1u);
  EXPECT_EQ(stuck[0].waiting, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(stuck[0].absent, std::vector<uint32_t>{1});
  EXPECT_EQ(stuck[0].called_ns, 200 * kUs);
  const std::string text = StuckCollectivesText(*analysis_);
  EXPECT_TRUE(
      text.starts_with("Ranks 0, 2 waited in AllReduce #1 of communicator 0xc0ffee for "
                       "10 s"))
      << text;
  EXPECT_NE(text.find("; rank 1 has not called it: rank 1 was in "), std::string::npos) << text;
}

TEST_F(CollectivesTest, CollectivesThatSomeRankHasLeftAreNotStuck) {
  AddRanks(2);
  for (uint32_t rank = 0; rank < 2; ++rank) Call(rank, 100 * kUs, 150 * kUs);
  Call(0, 200 * kUs, 250 * kUs);  // the record of the other one is lost
  Push(1, 200 * kUs, "ncclAllReduce", 1000);
  builder_.End(10'000'000 * kUs);
  EXPECT_TRUE(FindStuckCollectives(Find()).empty());
  EXPECT_EQ(StuckCollectivesText(*analysis_), "");
}

TEST_F(CollectivesTest, RanksOutsideOfTheCaptureAreNotSaidToBeThere) {
  AddRanks(1);
  Push(0, 10, "ncclCommInitRank", 4), Pop(0, 20);
  Call(0, 100 * kUs, 150 * kUs);
  Push(0, 200 * kUs, "ncclAllReduce", 1000);
  builder_.End(10'000'000 * kUs);
  Find();
  EXPECT_NE(StuckCollectivesText(*analysis_).find("3 of its ranks are not in this capture"),
            std::string::npos);
}

}  // namespace
}  // namespace xpu
