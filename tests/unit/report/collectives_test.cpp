#include "report/ranks/collectives.h"

#include <gtest/gtest.h>

#include "report/analysis/analysis.h"
#include "report/ranks/communication.h"
#include "report/ranks/late_ranks.h"
#include "report/ranks/rank_sums.h"
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
      for (const uint64_t schema : {kSchema + 2, kSchema + 3}) {
        uint64_t offset = 0;
        for (const std::string_view name :
             {"NCCL communicator ID", "Message size [bytes]", "Peer rank"}) {
          NvtxSchemaEntry& entry = builder_.events.nvtx_schema_entries.emplace_back();
          entry.instance = {rank + 1};
          entry.domain = 1;
          entry.schema = schema;
          entry.entry = static_cast<uint32_t>(offset / 8);
          entry.name = builder_.Text(schema == kSchema + 3 && offset == 8 ? "Rank" : name);
          entry.type = 18;  // 64 bits
          entry.offset = offset;
          offset += 8;
        }
      }
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
    PushWith(rank, at_ns, call, call == "ncclCommInitRank" ? kSchema + 1 : kSchema,
             {communicator, bytes, bytes});
  }
  void PushWith(uint32_t rank, uint64_t at_ns, std::string_view call, uint64_t schema,
                std::initializer_list<uint64_t> payload) {
    NvtxEvent& event = builder_.events.nvtx_events.emplace_back();
    event.instance = {rank + 1};
    event.time_ns = at_ns;
    event.kind = NvtxKind::kPush;
    event.tid = 101 + rank;
    event.domain = 1;
    event.text = builder_.Text(call);
    event.payload_type = NvtxPayload::kExtended;
    event.payload_schema = schema;
    event.payload_data = builder_.Text(
        {reinterpret_cast<const char*>(payload.begin()), payload.size() * sizeof(uint64_t)});
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
    last_kernel_ = &builder_.AddKernel(rank + 1, correlation_, start_ns, end_ns, name);
    last_kernel_->stream_id = 20;
  }
  ::xpu::Kernel& LastKernel() { return *last_kernel_; }
  // Its place in the communicator.
  void Init(uint32_t rank, uint64_t place) {
    PushWith(rank, 10, "ncclCommInitRank", kSchema + 3, {kCommunicator, place});
    Pop(rank, 20);
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
  ::xpu::Kernel* last_kernel_ = nullptr;
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

// Where all calls are known from the communicator's creation on, their numbers count, not the
// times.
TEST_F(CollectivesTest, NumberedCallsNeedNoTimes) {
  AddRanks(2);
  for (uint32_t rank = 0; rank < 2; ++rank) Push(rank, 10, "ncclCommInitRank", 2), Pop(rank, 20);
  for (uint64_t i = 1; i <= 5; ++i) {
    Call(0, i * 10'000 * kUs, (i * 10'000 + 10) * kUs);
    Call(1, (i * 10'000 + 700) * kUs, (i * 10'000 + 710) * kUs);
  }
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 5u);
  // No rank waits longer than its kernel ran.
  for (const Collective& collective : found.all) EXPECT_EQ(collective.waited_ns(), 10 * kUs);
}

// What a recording that began later, on one rank at another collective, sees of a job: without
// NVTX.
TEST_F(CollectivesTest, WindowsThatBeginApartAreAligned) {
  AddRanks(2);
  for (uint64_t i = 0; i < 30; ++i) {
    const uint64_t at_ns = (1000 + i * 500) * kUs;
    const uint64_t late_ns = i % 5 == 4 ? 200 * kUs : 0;  // rank 0
    if (i >= 8) Kernel(0, at_ns + late_ns - 5 * kUs, at_ns + late_ns, at_ns + 300 * kUs);
    Kernel(1, at_ns - 5 * kUs, at_ns, at_ns + 300 * kUs);
  }
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 30u);
  uint64_t waited_ns = 0;
  for (const Collective& collective : found.all) {
    EXPECT_EQ(collective.ranks, 2u);
    waited_ns += collective.waited_ns();
    if (collective.waited_ns() == 0) continue;
    EXPECT_EQ(collective.parts[collective.last].rank, 0u);
  }
  EXPECT_EQ(waited_ns, 5 * 200 * kUs);
  EXPECT_EQ(found.all[7].arrived, 1u);
  EXPECT_FALSE(AreImpossible(found));
}

// Kernels of two ranks that never run at the same time are of two jobs.
TEST_F(CollectivesTest, WhatCannotBeMatchedIsNotShown) {
  AddRanks(2);
  for (uint64_t i = 0; i < 20; ++i) {
    Kernel(0, i * 1000 * kUs + 90 * kUs, i * 1000 * kUs + 100 * kUs, i * 1000 * kUs + 150 * kUs);
    Kernel(1, i * 1000 * kUs + 590 * kUs, i * 1000 * kUs + 600 * kUs, i * 1000 * kUs + 650 * kUs);
  }
  const Collectives& found = Find();
  EXPECT_TRUE(found.all.empty());
  EXPECT_EQ(found.unmatched_kernels, 40u);
}

// The root of a broadcast leaves before a rank that came late; nobody waited for that one.
TEST_F(CollectivesTest, OnlyThoseWhoNeedDataWaitInABroadcast) {
  AddRanks(3);
  for (uint32_t rank = 0; rank < 3; ++rank) Push(rank, 10, "ncclCommInitRank", 3), Pop(rank, 20);
  Call(0, 100 * kUs, 110 * kUs, 8, "ncclBroadcast");
  Call(1, 60 * kUs, 112 * kUs, 8, "ncclBroadcast");
  Call(2, 900 * kUs, 910 * kUs, 8, "ncclBroadcast");
  const Collective& broadcast = Find().all.at(0);
  EXPECT_EQ(broadcast.parts[broadcast.last].rank, 2u);
  EXPECT_EQ(broadcast.parts[broadcast.awaited].rank, 0u);
  EXPECT_EQ(broadcast.transfer_ns(), 10 * kUs);
  EXPECT_EQ(broadcast.waited_ns(), 40 * kUs);
}

TEST_F(CollectivesTest, AKernelOfTwoCallsWaitsOnce) {
  AddRanks(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Push(rank, 10 * kUs, "ncclAllReduce", 1), Pop(rank, 11 * kUs);
    Push(rank, 12 * kUs, "ncclAllReduce", 2), Pop(rank, 13 * kUs);
    Kernel(rank, 20 * kUs, 30 * kUs + rank * 50 * kUs, 100 * kUs);
  }
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 2u);
  EXPECT_EQ(found.all[0].waited_ns() + found.all[1].waited_ns(), 50 * kUs);
}

TEST_F(CollectivesTest, AProcessOfTwoGpusIsTwoRanks) {
  AddRanks(1);
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t at_ns = (100 + i * 1000) * kUs;
    Push(0, at_ns, "ncclAllReduce", 1), Pop(0, at_ns + kUs);
    Push(0, at_ns + 2 * kUs, "ncclAllReduce", 1), Pop(0, at_ns + 3 * kUs);
    for (uint32_t gpu = 0; gpu < 2; ++gpu) {
      Kernel(0, at_ns + (10 + gpu) * kUs, at_ns + (20 + gpu * 50) * kUs, at_ns + 100 * kUs);
      LastKernel().device_id = gpu;
    }
  }
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 3u);
  EXPECT_TRUE(found.DrivesSeveral(0));
  for (const Collective& collective : found.all) {
    EXPECT_EQ(collective.arrived, 2u);
    EXPECT_FALSE(collective.is_grouped());
    EXPECT_EQ(collective.parts[collective.last].gpu, 1u);
    EXPECT_EQ(collective.waited_ns(), 50 * kUs);
  }
}

TEST_F(CollectivesTest, MessagesAreMatchedBySenderAndReceiver) {
  AddRanks(3);
  for (uint32_t rank = 0; rank < 3; ++rank) Init(rank, 2 - rank);  // the places of the ranks
  const auto message = [&](uint32_t rank, const char* call, uint64_t peer, uint64_t start_ns,
                           uint64_t end_ns) {
    PushWith(rank, start_ns - 10 * kUs, call, kSchema + 2, {kCommunicator, 64, peer});
    Kernel(rank, start_ns - 5 * kUs, start_ns, end_ns, "ncclDevKernel_SendRecv()");
    Pop(rank, start_ns - 2 * kUs);
  };
  // The rank at place 2 to that at 1, which waits for it; that one to the one at 0, twice.
  message(0, "ncclSend", 1, 300 * kUs, 350 * kUs);
  message(1, "ncclRecv", 2, 100 * kUs, 351 * kUs);
  message(1, "ncclSend", 0, 400 * kUs, 410 * kUs);
  message(2, "ncclRecv", 1, 380 * kUs, 411 * kUs);
  message(1, "ncclSend", 0, 500 * kUs, 510 * kUs);
  message(2, "ncclRecv", 1, 600 * kUs, 611 * kUs);
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 3u);
  EXPECT_EQ(found.unmatched_kernels, 0u);
  const Collective& first = found.all[0];
  EXPECT_EQ(first.operation, "SendRecv");
  EXPECT_EQ(first.bytes, 64u);
  EXPECT_TRUE(first.is_complete());
  EXPECT_EQ(first.parts[first.last].rank, 0u);
  EXPECT_EQ(first.waited_ns(), 200 * kUs);
  EXPECT_EQ(found.all[1].sequence, 0u);
  EXPECT_EQ(found.all[1].waited_ns(), 20 * kUs);
  EXPECT_EQ(found.all[2].sequence, 1u);
  EXPECT_EQ(found.all[2].waited_ns(), 0u);  // the sender was gone
  EXPECT_TRUE(FindStuckCollectives(found).empty());
}

// The call that put its kernel into a graph ran nothing, and is one collective in each replay.
TEST_F(CollectivesTest, InsideCudaGraphs) {
  AddRanks(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Push(rank, 10 * kUs, "ncclAllReduce", 32);
    const uint32_t captured = ++correlation_;
    builder_.Call(rank + 1, captured, test::kLaunchKernel, 11 * kUs, 12 * kUs, 101 + rank)
        .graph_nodes = 1;
    Pop(rank, 13 * kUs);
    GraphNode& node = builder_.events.graph_nodes.emplace_back();
    node.instance = {rank + 1};
    node.time_ns = 12 * kUs;
    node.change = GraphNodeChange::kCreated;
    node.node_id = uint64_t{1} << 32;
    node.correlation_id = captured;
    node.graph_id = 1;
    for (uint64_t replay = 1; replay <= 3; ++replay) {
      const uint64_t at_ns = replay * 1000 * kUs + rank * 40 * kUs;
      Kernel(rank, at_ns - 10 * kUs, at_ns, replay * 1000 * kUs + 100 * kUs);
      LastKernel().graph_node_id = uint64_t{1} << 32;
    }
    Call(rank, 9000 * kUs, 9100 * kUs);
  }
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 4u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found.all[i].bytes, 32u);
    EXPECT_EQ(found.all[i].arrived, 2u);
    EXPECT_EQ(found.all[i].waited_ns(), 40 * kUs);
  }
  EXPECT_EQ(found.unmatched_kernels, 0u);
}

// Replays that are recorded as a whole have no kernels; the calls that were captured hang nowhere.
TEST_F(CollectivesTest, CapturedCallsAreNotStuck) {
  AddRanks(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Call(rank, 100 * kUs, 150 * kUs);
    Push(rank, 200 * kUs, "ncclAllReduce", 32);
    builder_.Call(rank + 1, ++correlation_, test::kLaunchKernel, 201 * kUs, 202 * kUs, 101 + rank)
        .graph_nodes = 1;
    Pop(rank, 203 * kUs);
  }
  builder_.End(20'000'000 * kUs);
  const Collectives& found = Find();
  EXPECT_EQ(found.all.size(), 1u);
  EXPECT_EQ(found.hidden, 2u);
  EXPECT_TRUE(FindStuckCollectives(found).empty());
}

// By name they may be collectives; times on several GPUs decide.
TEST_F(CollectivesTest, KernelsOfOtherLibraries) {
  AddRanks(2);
  for (uint64_t i = 0; i < 10; ++i) {
    const uint64_t at_ns = (1000 + i * 1000) * kUs;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      Kernel(rank, at_ns - 5 * kUs, at_ns + rank * 30 * kUs, at_ns + 60 * kUs,
             "void vllm::cross_device_reduce_1stage<float, 2>(float*)");
      Kernel(rank, at_ns + 200 * kUs, at_ns + (300 + rank * 300) * kUs,
             at_ns + (320 + rank * 300) * kUs, "block_all_reduce_kernel()");
      LastKernel().stream_id = 7;
    }
  }
  const Collectives& found = Find();
  ASSERT_EQ(found.all.size(), 10u);
  EXPECT_EQ(found.all[0].operation, "AllReduce");
  EXPECT_EQ(found.all[0].waited_ns(), 30 * kUs);
  EXPECT_EQ(found.unmatched_kernels, 0u);
}

// The thread that launches waits for another one of its process, which is what makes the rank late.
TEST_F(CollectivesTest, TheThreadThatRanIsNamed) {
  AddRanks(2);
  builder_.Map(1, 101, test::kText, 0x1000, 0, "/bin/train");
  builder_.Source(100 * kUs);
  const StackId decode = builder_.Stack({test::kText});
  for (uint64_t i = 0; i < 4; ++i) {
    const uint64_t at_ns = (10'000 + i * 10'000) * kUs;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const uint64_t late_ns = rank == 0 && i > 0 ? 4000 * kUs : 0;
      ++correlation_;
      builder_.Call(rank + 1, correlation_, test::kLaunchKernel, at_ns + late_ns - 10 * kUs,
                    at_ns + late_ns - 9 * kUs, 101 + rank);
      builder_.Launch(rank + 1, correlation_, at_ns + late_ns - 10 * kUs, 101 + rank, 555,
                      builder_.Stack({test::kText + 8}));
      builder_.AddKernel(rank + 1, correlation_, at_ns + late_ns, at_ns + 5000 * kUs,
                         "ncclDevKernel_AllReduce_Sum_f32_RING_LL()");
    }
    for (uint64_t k = 0; i > 0 && k < 40; ++k) {
      builder_.Sample(at_ns + k * 100 * kUs, 101, 101, decode);
    }
  }
  const Collectives& found = Find();
  CallPaths paths(*analysis_, {});
  const std::vector<Straggler> late = FindStragglers(*analysis_, found, paths);
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].rank, 0u);
  EXPECT_EQ(late[0].cause, LateCause::kCpu);
  EXPECT_EQ(late[0].count, 3u);
  EXPECT_EQ(late[0].waited_ns, 12'000 * kUs);
  EXPECT_TRUE(LateRanksText(*analysis_)
                  .starts_with("Rank 0 came late to 3 collectives: the other "
                               "ranks waited 12 ms for it"))
      << LateRanksText(*analysis_);
  const std::vector<RankSum> sums = FindRankSums(*analysis_, FindGpuBusy(*analysis_), {});
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].rank, 0u);
  EXPECT_EQ(sums[0].awaited_ns, 12'000 * kUs);
  EXPECT_EQ(sums[1].waited_ns, 12'000 * kUs);
}

TEST(Impossible, LongerThanTheRankWasThere) {
  Collectives found;
  for (uint64_t i = 0; i < 2; ++i) {
    Collective& collective = found.all.emplace_back();
    collective.parts = {{.rank = 0, .arrived_ns = 100 + i, .end_ns = 200, .waited_ns = 90}};
  }
  EXPECT_TRUE(AreImpossible(found));
  found.all[1].parts[0].waited_ns = 10;
  EXPECT_FALSE(AreImpossible(found));
}

TEST_F(CollectivesTest, RanksThatCallOtherSizesDisagree) {
  AddRanks(2);
  for (uint32_t rank = 0; rank < 2; ++rank) Push(rank, 10, "ncclCommInitRank", 2), Pop(rank, 20);
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
