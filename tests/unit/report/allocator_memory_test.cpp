#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "report/query/gpu_memory.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

class AllocatorMemoryTest : public testing::Test {
 protected:
  AllocatorMemoryTest() {
    builder_.Process(ProcessEventKind::kExec, 0, 10, 10, "python3");
    GpuProcess& process = builder_.events.gpu_processes.emplace_back();
    process.instance = InstanceId{0xa};
    process.pid = process.namespace_pid = 10;
  }

  // Handed out, or taken back where `bytes` is negative; the sums follow, from `earlier_` on.
  AllocatorEvent& Add(uint64_t time_ns, uint64_t address, int64_t bytes, uint64_t reserved,
                      uint64_t code = 0x100) {
    AllocatorEvent& added = builder_.events.allocator_events.emplace_back();
    added.instance = InstanceId{0xa};
    added.pid = added.tid = 10;
    added.time_ns = time_ns;
    added.allocator = AllocatorKind::kPyTorch;
    added.address = address;
    added.size_bytes = bytes;
    added.has_totals = true;
    allocated_ += static_cast<uint64_t>(bytes);
    added.allocated_bytes = allocated_;
    added.reserved_bytes = reserved;
    if (bytes > 0) added.stack = builder_.Stack({code});
    return added;
  }
  static std::vector<std::pair<uint64_t, uint64_t>> In(const AllocatorMemory& memory,
                                                       MemoryView view) {
    std::vector<std::pair<uint64_t, uint64_t>> found;
    for (const AllocatorBlock& block : memory.blocks()) {
      if (!memory.IsIn(view, block)) continue;
      found.emplace_back(block.event->time_ns, block.event->size_bytes);
    }
    return found;
  }
  static std::string Folded(Analysis& analysis, MemoryView view) {
    ViewOptions options;
    options.tree.mode = TreeMode::kMemory;
    options.tree.memory = view;
    std::string notes;
    return test::Written([&](Output& output) { WriteFolded(analysis, options, output, notes); });
  }

  test::ModelBuilder builder_;
  uint64_t allocated_ = 0;
};

using Blocks = std::vector<std::pair<uint64_t, uint64_t>>;

TEST_F(AllocatorMemoryTest, PeakGrowthAndWhatIsLeft) {
  allocated_ = 5;  // of before the recording
  Add(10, 0x1000, 100, 200);
  Add(20, 0x2000, 50, 200);
  Add(30, 0x1000, -100, 200);
  Add(40, 0x9000, -5, 200);  // of before the recording
  Add(50, 0x1000, 70, 400);
  Add(60, 0x2000, -50, 400);
  const Analysis analysis(builder_.Build());
  const AllocatorMemory memory(analysis);
  ASSERT_EQ(memory.uses().size(), 1u);
  const AllocatorUse& use = memory.uses()[0];
  EXPECT_EQ(use.pid, 10u);
  EXPECT_EQ(use.count, 3u);
  EXPECT_EQ(use.peak_bytes, 155u);
  EXPECT_EQ(use.peak_ns, 20u);
  EXPECT_EQ(use.earlier_bytes, 5u);
  EXPECT_EQ(use.reserved_peak_bytes, 400u);
  EXPECT_EQ(use.allocated_then_bytes, 120u);
  EXPECT_EQ(use.left_bytes, 70u);
  EXPECT_EQ(use.left_count, 1u);
  EXPECT_EQ(In(memory, MemoryView::kPeak), (Blocks{{10, 100}, {20, 50}}));
  EXPECT_EQ(In(memory, MemoryView::kGrowth), (Blocks{{50, 70}}));
  EXPECT_EQ(In(memory, MemoryView::kLeft), (Blocks{{50, 70}}));
}

TEST_F(AllocatorMemoryTest, GrowthBetweenTwoTimes) {
  Add(10, 0x1000, 100, 200);
  Add(20, 0x2000, 50, 200);
  Add(30, 0x3000, 7, 200);
  Add(40, 0x2000, -50, 200);
  Add(50, 0x4000, 9, 200);
  Analysis analysis(builder_.Build());
  analysis.shown.from_ns = 20;
  analysis.shown.to_ns = 40;
  const AllocatorMemory memory(analysis);
  EXPECT_EQ(In(memory, MemoryView::kGrowth), (Blocks{{20, 50}, {30, 7}}));
  EXPECT_EQ(In(memory, MemoryView::kLeft), (Blocks{{10, 100}, {20, 50}, {30, 7}}));
  EXPECT_EQ(memory.uses()[0].peak_bytes, 157u);
}

TEST_F(AllocatorMemoryTest, ABlockWhoseReleaseWasLostEndsWhenItsAddressComesAgain) {
  Add(10, 0x1000, 100, 200);
  allocated_ -= 100;
  Add(20, 0x1000, 60, 200);
  const Analysis analysis(builder_.Build());
  EXPECT_EQ(In(AllocatorMemory(analysis), MemoryView::kLeft), (Blocks{{20, 60}}));
}

TEST_F(AllocatorMemoryTest, SumsOfItsOwnWhereTheAllocatorReportsNone) {
  Add(10, 0x1000, 100, 0).has_totals = false;
  Add(20, 0x2000, 50, 0).has_totals = false;
  Add(30, 0x1000, -100, 0).has_totals = false;
  for (AllocatorEvent& event : builder_.events.allocator_events) event.allocated_bytes = 0;
  const Analysis analysis(builder_.Build());
  const AllocatorMemory memory(analysis);
  EXPECT_EQ(memory.uses()[0].peak_bytes, 150u);
  EXPECT_EQ(memory.uses()[0].earlier_bytes, 0u);
}

TEST_F(AllocatorMemoryTest, FragmentationIsMoreReservedWhileEnoughIsUnused) {
  Add(10, 0x1000, 100, 100);
  Add(20, 0x1000, -100, 100);
  Add(30, 0x2000, 60, 160);  // 100 were unused
  Add(40, 0x3000, 90, 250);  // 100 were unused
  Add(50, 0x4000, 20, 300);  // 100 were unused, and so on
  Add(60, 0x5000, 200, 500);
  const Analysis analysis(builder_.Build());
  const AllocatorMemory memory(analysis);
  const Fragmentation& worst = memory.uses()[0].worst;
  ASSERT_NE(worst.event, nullptr);
  EXPECT_EQ(worst.event->time_ns, 30u);
  EXPECT_EQ(worst.unused_bytes, 100u);
}

TEST_F(AllocatorMemoryTest, FoldedShowsBytes) {
  allocated_ = 3;
  Add(10, 0x1000, 100, 2000);
  Add(20, 0x2000, 50, 2000, 0x200);
  Add(30, 0x1000, -100, 2000);
  Analysis analysis(builder_.Build());
  EXPECT_EQ(Folded(analysis, MemoryView::kPeak),
            "python3;[before the recording];[GPU_Memory]PyTorch 3\n"
            "python3;[unknown];[GPU_Memory]PyTorch 150\n");
  EXPECT_EQ(Folded(analysis, MemoryView::kLeft), "python3;[unknown];[GPU_Memory]PyTorch 50\n");
}

TEST_F(AllocatorMemoryTest, WhatTheAllocatorHasFromCudaIsNotCountedBesideItsBlocks) {
  Add(10, 0x1080, 100, 2000);
  const auto allocate = [&](uint64_t address) {
    MemoryOperation& operation = builder_.events.memory_operations.emplace_back();
    operation.instance = InstanceId{0xa};
    operation.time_ns = 5;
    operation.operation = 1;
    operation.memory_kind = 3;
    operation.address = address;
    operation.size_bytes = 0x1000;
  };
  allocate(0x1000);
  allocate(0x8000);
  Analysis analysis(builder_.Build());
  EXPECT_EQ(Folded(analysis, MemoryView::kPeak),
            "python3;[unknown call];[GPU_Memory]device 4096\n"
            "python3;[unknown];[GPU_Memory]PyTorch 100\n");
}

}  // namespace
}  // namespace xpu
