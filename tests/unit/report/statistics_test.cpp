#include "report/query/statistics.h"

#include <memory>

#include <gtest/gtest.h>

#include "format/base/text.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

TEST(Summarize, OfSeveralValues) {
  std::vector<uint64_t> values = {4, 2, 9, 5};
  const Statistics row = Summarize("x", values);
  EXPECT_EQ(row.count, 4u);
  EXPECT_EQ(row.total, 20u);
  EXPECT_EQ(row.smallest, 2u);
  EXPECT_EQ(row.largest, 9u);
  EXPECT_DOUBLE_EQ(row.average, 5.0);
  EXPECT_DOUBLE_EQ(row.median, 4.5);
  EXPECT_NEAR(row.deviation, 2.943920, 1e-6);  // sqrt(26 / 3)
}

TEST(Summarize, OfOneAndOfNone) {
  std::vector<uint64_t> one = {7};
  EXPECT_DOUBLE_EQ(Summarize("x", one).median, 7.0);
  EXPECT_DOUBLE_EQ(Summarize("x", one).deviation, 0.0);
  std::vector<uint64_t> none;
  EXPECT_EQ(Summarize("x", none).count, 0u);
}

TEST(FunctionTimes, SelfAndTotalAndRecursion) {
  FrameTable frames;
  CallTreeLimit limit;
  CallTree tree(limit);
  const FrameId comm = frames.Intern("comm");
  const FrameId f = frames.Intern("f");
  const FrameId g = frames.Intern("g");
  PathId path = tree.Child(tree.Child({}, comm), f);
  tree.Add(path, 10);  // f
  path = tree.Child(path, g);
  tree.Add(path, 20);  // f > g
  path = tree.Child(path, f);
  tree.Add(path, 5);  // f > g > f: f counts once
  const std::vector<FunctionTime> rows = FunctionTimes(tree, frames);
  ASSERT_EQ(rows.size(), 2u);  // the name of the thread is no function
  EXPECT_EQ(rows[0].frame, g);
  EXPECT_EQ(rows[0].self_ns, 20u);
  EXPECT_EQ(rows[0].total_ns, 25u);
  EXPECT_EQ(rows[1].frame, f);
  EXPECT_EQ(rows[1].self_ns, 15u);
  EXPECT_EQ(rows[1].self_count, 2u);
  EXPECT_EQ(rows[1].total_ns, 35u);
  EXPECT_EQ(rows[1].total_count, 3u);
}

// Kernels that run at once, on two streams of each of two GPUs: sums count each in full.
class WorkTimesTest : public testing::Test {
 protected:
  WorkTimesTest() {
    builder_.Callback(1, ApiDomain::kRuntime, 211, "cudaLaunchKernel_v7000");
    uint32_t id = 0;
    for (const uint32_t device : {0u, 1u}) {
      for (const uint32_t stream : {7u, 8u}) {
        const uint64_t start = 1'000 + 100 * ++id;
        builder_.Call(1, id, 211, start - 50, start - 20, 5);
        Kernel& kernel = builder_.AddKernel(1, id, start, start + 1'000 * id, "k");
        kernel.device_id = device;
        kernel.stream_id = stream;
        kernel.grid_x = 64;
        kernel.block_x = device == 0 ? 32 : 256;
      }
    }
    Memcpy& copy = builder_.events.memcpys.emplace_back();
    copy.instance = {1};
    copy.start_ns = 1'000;
    copy.end_ns = 8'500;
    copy.size_bytes = 3'000;
    copy.copy_kind = 1;
    builder_.AddKernel(1, 99, 0, 0, "k");  // without a time
    analysis_ = std::make_unique<Analysis>(builder_.Build());
  }

  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
};

TEST_F(WorkTimesTest, ByName) {
  const GpuNames names(*analysis_, KernelNames::kFull);
  const std::vector<Statistics> rows = KernelTimes(*analysis_, names);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].count, 4u);
  EXPECT_EQ(rows[0].total, 10'000u);
  EXPECT_EQ(rows[0].smallest, 1'000u);
  EXPECT_EQ(rows[0].largest, 4'000u);
  EXPECT_DOUBLE_EQ(rows[0].median, 2'500);
  EXPECT_EQ(SumOfTotals(rows), 10'000u);
}

TEST(JitOperationTimes, ByOperationAndCode) {
  test::ModelBuilder builder;
  const auto add = [&](uint32_t entry, uint32_t operation, uint64_t start, uint64_t end) {
    JitOperation& jit = builder.events.jit_operations.emplace_back();
    jit.start_ns = start;
    jit.end_ns = end;
    jit.entry_kind = entry;
    jit.operation = operation;
    jit.cache_size_bytes = ~uint64_t{0} / 2;
  };
  add(1, 3, 100, 200);
  add(1, 3, 300, 600);
  add(1, 3, 700, 800);
  add(1, 2, 200, 210);
  add(9, 9, 500, 505);
  add(1, 3, 0, 0);     // without a time
  add(1, 3, 100, 50);  // likewise
  const Analysis analysis(builder.Build());
  const std::vector<JitTimes> rows = JitOperationTimes(analysis);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].operation, "compile");
  EXPECT_EQ(rows[0].entry, "PTX to machine code");
  EXPECT_EQ(rows[0].times.count, 3u);
  EXPECT_EQ(rows[0].times.total, 500u);
  EXPECT_EQ(rows[0].cache_bytes, ~uint64_t{0} / 2);
  EXPECT_EQ(rows[1].operation, "cache store");
  EXPECT_EQ(rows[1].times.total, 10u);
  EXPECT_EQ(rows[2].operation, "?");
  EXPECT_EQ(rows[2].entry, "?");
}

TEST_F(WorkTimesTest, ByShape) {
  const GpuNames names(*analysis_, KernelNames::kFull);
  const std::vector<KernelShape> rows = KernelShapeTimes(*analysis_, names);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].grid, "64 0 0");
  EXPECT_EQ(rows[0].block, "256 0 0");
  EXPECT_EQ(rows[0].times.total, 7'000u);
  EXPECT_EQ(rows[1].block, "32 0 0");
  EXPECT_EQ(rows[1].times.total, 3'000u);
}

TEST_F(WorkTimesTest, ByCategory) {
  const GpuNames names(*analysis_, KernelNames::kFull);
  const auto text = [](const std::vector<CategoryTimes>& rows) {
    std::string all;
    for (const CategoryTimes& row : rows) {
      all +=
          Format("{} {} {} {}\n", row.category, row.times.name, row.times.count, row.times.total);
    }
    return all;
  };
  const std::string gpu =
      "CUDA_KERNEL k 4 10000\n"
      "MEMORY_OPER [CUDA memcpy Host-to-Device] 1 7500\n";
  EXPECT_EQ(text(GpuWorkTimes(*analysis_, names)), gpu);
  EXPECT_EQ(text(ApiAndGpuWorkTimes(*analysis_, names)), gpu + "CUDA_API cudaLaunchKernel 4 120\n");
}

TEST_F(WorkTimesTest, ByLaunchPath) {
  CallPaths paths(*analysis_, {});
  const std::vector<LaunchPathTime> rows = LaunchPathTimes(*analysis_, KernelNames::kFull, paths);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].times.total, 10'000u);
  EXPECT_EQ(rows[0].times.count, 4u);
  EXPECT_EQ(analysis_->frames[paths.tree()[rows[0].path].frame].name, "[GPU_Kernel]k");
  EXPECT_EQ(rows[1].times.total, 7'500u);
}

}  // namespace
}  // namespace xpu
