// --sample 1/N
#include <set>

#include <gtest/gtest.h>

#include "format/base/text.h"
#include "report/analysis/filter.h"
#include "report/analysis/gpu_names.h"
#include "report/query/statistics.h"
#include "report/views/tables/top_tables.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

using test::kLaunchKernel;
constexpr uint32_t kSynchronize = 165;
constexpr uint64_t kSampleCount = 1003;
constexpr uint64_t kLaunches = 2000;

// Ten kernels by turns, kernel i takes 100 * (i + 1) ns, a synchronization after each ten.
std::unique_ptr<Analysis> Capture() {
  test::ModelBuilder builder;
  builder.Source(1000);
  builder.Clock(1, 0, {1000});
  builder.Callback(1, ApiDomain::kRuntime, kLaunchKernel, "cudaLaunchKernel_v7000");
  builder.Callback(1, ApiDomain::kRuntime, kSynchronize, "cudaDeviceSynchronize_v3020");
  const StackId stack = builder.Stack({0x10});
  builder.Process(ProcessEventKind::kExisting, 0, 100, 100, "app");
  for (uint64_t i = 0; i < kSampleCount; ++i) builder.Sample(10'000 * i, 100, 100, stack);
  uint32_t id = 0;
  for (uint64_t i = 0; i < kLaunches; ++i) {
    const uint64_t start_ns = 10'000 * (i + 1);
    builder.Call(1, ++id, kLaunchKernel, start_ns, start_ns + 50, 100);
    builder.Launch(1, id, start_ns + 1, 100, 100, stack);
    builder.AddKernel(1, id, start_ns + 100, start_ns + 200 + 100 * (i % 10),
                      "k" + std::to_string(i % 10));
    if (i % 10 == 9) builder.Call(1, ++id, kSynchronize, start_ns + 60, start_ns + 90, 100);
  }
  return std::make_unique<Analysis>(builder.Build());
}

TEST(SampleRate, ParsesItsOption) {
  EXPECT_EQ(ParseSampleRate("1/10").value(), 10u);
  EXPECT_EQ(ParseSampleRate("1/1").value(), 1u);
  EXPECT_EQ(ParseSampleRate("1/1000000").value(), 1'000'000u);
  for (const char* text : {"", "10", "1/", "1/0", "2/10", "1/-1", "1/1e3", "1/10x", "1/1000001"}) {
    EXPECT_FALSE(ParseSampleRate(text).ok()) << text;
  }
}

TEST(SampleRate, KeepsOneOfEachNeighbors) {
  const auto analysis = Capture();
  const std::string line = SelectOneOf(10, analysis->trace(), analysis->shown);
  EXPECT_EQ(line, Format("--sample 1/10: {} of 1,003 CPU samples, {} of 2,000 GPU operations\n",
                         analysis->CpuSamples().size(), analysis->Work().size()));
  const size_t samples = analysis->CpuSamples().size();
  EXPECT_TRUE(samples == 100 || samples == 101);  // of the last three one may be kept
  std::set<uint64_t> blocks;
  for (const CpuSample& sample : analysis->CpuSamples()) {
    EXPECT_TRUE(blocks.insert(sample.time_ns / 100'000).second);
  }
  // 2,200 calls in 220 blocks; ten of eleven have started a kernel.
  EXPECT_EQ(analysis->Launches().size(), 220u);
  EXPECT_NEAR(static_cast<double>(analysis->Work().size()), 200, 15);
  for (const GpuWork& work : analysis->Work()) {
    const Launch& launch = analysis->correlation.launches[work.launch];
    EXPECT_EQ(launch.correlation_id, work.correlation_id);
    EXPECT_TRUE(analysis->shown.counted_launches.Has(work.launch));
  }
}

TEST(SampleRate, IsTheSameEachTime) {
  const auto one = Capture();
  const auto other = Capture();
  SelectOneOf(7, one->trace(), one->shown);
  SelectOneOf(7, other->trace(), other->shown);
  const auto kept = [](const Analysis& analysis) {
    const auto places = analysis.Work().places();
    return std::vector<uint32_t>(places.begin(), places.end());
  };
  EXPECT_EQ(kept(*one), kept(*other));
}

// The program repeats itself after ten kernels: taking just each tenth would see one of them.
TEST(SampleRate, TotalsStayNearTheTruth) {
  const auto all = Capture();
  const auto thin = Capture();
  SelectOneOf(10, thin->trace(), thin->shown);
  const auto of = [](const Analysis& analysis) {
    return KernelTimes(analysis, GpuNames(analysis, KernelNames::kFull));
  };
  const auto exact = of(*all);
  const auto rows = of(*thin);
  ASSERT_EQ(exact.size(), 10u);
  EXPECT_EQ(rows.size(), 10u);
  EXPECT_NEAR(static_cast<double>(SumOfTotals(rows)) / static_cast<double>(SumOfTotals(exact)), 1,
              0.1);
  for (const Statistics& row : rows) {
    EXPECT_EQ(row.count % 10, 0u);
    // The times of one name are all alike: what is multiplied is the count and the total only.
    EXPECT_EQ(row.smallest, row.largest);
    EXPECT_EQ(row.total, row.count * row.smallest);
    EXPECT_EQ(row.average, static_cast<double>(row.smallest));
  }
  const auto calls = ApiTimes(*thin);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].count + calls[1].count, 2200u);  // one of each ten, exactly
}

TEST(SampleRate, FoldedLinesAreMultiplied) {
  const auto analysis = Capture();
  SelectOneOf(10, analysis->trace(), analysis->shown);
  const size_t samples = analysis->CpuSamples().size();
  const auto lines =
      test::Folded(*analysis, {.tree = {.mode = TreeMode::kCpu}, .unit = TimeUnit::kNanoseconds});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines.begin()->second, samples * 1000 * 10);
  uint64_t kept_ns = 0;
  for (const GpuWork& work : analysis->Work()) kept_ns += work.duration_ns;
  uint64_t shown_ns = 0;
  for (const auto& [stack, ns] : test::Folded(
           *analysis, {.tree = {.mode = TreeMode::kGpu}, .unit = TimeUnit::kNanoseconds})) {
    shown_ns += ns;
  }
  EXPECT_EQ(shown_ns, kept_ns * 10);
}

// All nodes of a graph's launch are kept or none; the call that made a node is there for its path,
// but it is not counted for others.
TEST(SampleRate, GraphsStayWhole) {
  test::ModelBuilder builder;
  builder.Clock(1, 0, {1000});
  builder.Callback(1, ApiDomain::kRuntime, 311, "cudaGraphLaunch_v10000");
  builder.Callback(1, ApiDomain::kRuntime, kLaunchKernel, "cudaLaunchKernel_v7000");
  builder.Call(1, 1, kLaunchKernel, 5, 6, 100).graph_nodes = 1;
  builder.events.graph_nodes.push_back({.instance = {1},
                                        .time_ns = 5,
                                        .node_id = 9,
                                        .graph_id = 1,
                                        .tid = 100,
                                        .correlation_id = 1});
  for (uint32_t i = 0; i < 100; ++i) {
    builder.Call(1, i + 2, 311, 1000 * (i + 1), 1000 * (i + 1) + 5, 100);
    for (uint64_t j = 0; j < 3; ++j) {
      const uint64_t start_ns = 1000 * (i + 1) + 10 * (j + 1);
      builder.AddKernel(1, i + 2, start_ns, start_ns + 5, "k").graph_node_id = 9;
    }
  }
  Analysis analysis(builder.Build());
  SelectOneOf(20, analysis.trace(), analysis.shown);
  EXPECT_EQ(analysis.Work().size() % 3, 0u);
  EXPECT_GT(analysis.Work().size(), 0u);
  uint64_t counted = 0;
  for (const uint32_t place : analysis.Launches().places()) {
    if (analysis.correlation.launches[place].graph_nodes > 0) {
      for (const GpuWork& work : analysis.Work()) EXPECT_EQ(work.creation, place);
    }
    counted += analysis.shown.counted_launches.Has(place) ? 1 : 0;
  }
  uint64_t shown = 0;
  for (const Statistics& row : ApiTimes(analysis)) shown += row.count;
  EXPECT_EQ(shown, counted * 20);
}

TEST(SampleRate, TablesThatNeedEveryEventAreLeftOut) {
  ViewOptions thinned;
  thinned.sample_rate = 2;
  std::set<std::string_view> names;
  for (const TableKind* kind : WantedTables(thinned)) names.insert(kind->name);
  EXPECT_TRUE(names.contains("cuda_gpu_kern_sum"));
  EXPECT_TRUE(names.contains("callpath_sum"));
  EXPECT_FALSE(names.contains("gpu_busy_sum"));
  EXPECT_FALSE(names.contains("cuda_wait_sum"));
  thinned.table = "gpu_busy_sum";
  const Status status = CheckTopOptions(thinned, false);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "--table: gpu_busy_sum needs every event and cannot be combined with --sample");
}

}  // namespace
}  // namespace xpu
