#include "report/query/gpu_memory.h"

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

constexpr uint32_t kDevice = 3;
constexpr uint32_t kPinned = 2;

class GpuMemoryTest : public testing::Test {
 protected:
  GpuMemoryTest() {
    builder_.Process(ProcessEventKind::kExec, 0, 10, 10, "app");
    builder_.Clock(0xa, 1000, {0, 1'000'000});
    builder_.Callback(0xa, ApiDomain::kRuntime, 1, "cudaMalloc");
    GpuProcess& process = builder_.events.gpu_processes.emplace_back();
    process.instance = InstanceId{0xa};
    process.pid = process.namespace_pid = 10;
  }

  MemoryOperation& Add(uint64_t time_ns, uint32_t operation, uint64_t address, uint64_t bytes) {
    MemoryOperation& added = builder_.events.memory_operations.emplace_back();
    added.instance = InstanceId{0xa};
    added.time_ns = 1000 + time_ns;
    added.operation = operation;
    added.memory_kind = kDevice;
    added.address = address;
    added.size_bytes = bytes;
    added.correlation_id = static_cast<uint32_t>(time_ns);
    return added;
  }

  test::ModelBuilder builder_;
};

TEST_F(GpuMemoryTest, PeakAndWhatStays) {
  Add(10, 1, 0x1000, 100);
  Add(20, 1, 0x2000, 50);
  Add(30, 2, 0x1000, 100);
  Add(40, 1, 0x1000, 70);  // the same address again
  Add(50, 2, 0x2000, 50);
  Add(60, 2, 0x9000, 5);  // of before the recording
  Add(70, 1, 0x5000, 1000).memory_kind = kPinned;
  builder_.Call(0xa, 20, 1, 15, 25, 10);
  const Analysis analysis(builder_.Build());
  const GpuMemory memory = FollowMemory(analysis);
  ASSERT_EQ(memory.uses.size(), 1u);
  const GpuMemoryUse& use = memory.uses[0];
  EXPECT_EQ(use.count, 4u);
  EXPECT_EQ(use.peak_bytes, 150u);
  EXPECT_EQ(use.peak_ns, 20u);
  EXPECT_EQ(use.left_count, 2u);
  EXPECT_EQ(use.left_bytes, 1070u);
  std::vector<std::pair<uint64_t, uint64_t>> levels;
  for (const MemoryLevel& level : use.levels) levels.emplace_back(level.time_ns, level.bytes);
  const std::vector<std::pair<uint64_t, uint64_t>> wanted = {
      {10, 100}, {20, 150}, {30, 50}, {40, 120}, {50, 70}};
  EXPECT_EQ(levels, wanted);
  EXPECT_EQ(memory.unmatched_frees, 1u);
  ASSERT_EQ(memory.allocations.size(), 4u);
  EXPECT_TRUE(memory.allocations[0].at_peak);
  EXPECT_TRUE(memory.allocations[1].at_peak);
  EXPECT_FALSE(memory.allocations[2].at_peak);
  EXPECT_FALSE(memory.allocations[3].at_peak);
  EXPECT_EQ(memory.allocations[0].launch, GpuWork::kNoLaunch);
  ASSERT_NE(memory.allocations[1].launch, GpuWork::kNoLaunch);
  EXPECT_EQ(analysis.correlation.launches[memory.allocations[1].launch].correlation_id, 20u);
}

TEST_F(GpuMemoryTest, Table) {
  Add(10, 1, 0x1000, 2'000'000);
  builder_.Call(0xa, 10, 1, 5, 15, 10);
  builder_.Launch(0xa, 10, 5, 10, 10, builder_.Stack({0x100}));
  Analysis analysis(builder_.Build());
  ViewOptions options;
  options.format = TableFormat::kCsv;
  options.table = "gpu_mem_alloc_sum";
  const std::string text =
      test::Written([&](Output& output) { WriteTop(analysis, options, output); });
  EXPECT_EQ(text,
            "Peak (MB),Total (MB),Count,Not Freed (MB),Not Freed,DevId,Memory,Path\n"
            "2.000,2.000,1,2.000,1,0,device,app;[unknown];cudaMalloc\n");
}

}  // namespace
}  // namespace xpu
