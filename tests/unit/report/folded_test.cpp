#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::ElfBuilder;
using test::Lines;

using test::kLaunchKernel;
using test::kText;

ViewOptions In(TimeUnit unit, TreeMode mode = TreeMode::kCpuAndGpu) {
  return {.tree = {.mode = mode}, .unit = unit};
}

class FoldedTest : public testing::Test {
 protected:
  FoldedTest() {
    ElfBuilder("app")
        .Symbol("main", 0x0, 0x100)
        .Symbol("forward", 0x100, 0x100)
        .Symbol("libcudart_static_1", 0x200, 0x100)
        .Symbol("cudaLaunchKernel", 0x300, 0x100)
        .WriteTo(directory_ / "app");
    builder_.Process(ProcessEventKind::kExisting, 1, 100, 100, "app");
    builder_.Map(1, 100, kText, ElfBuilder::kTextBytes, ElfBuilder::kTextOffset, directory_ / "app",
                 "app");
    builder_.Callback(1, ApiDomain::kRuntime, kLaunchKernel, "cudaLaunchKernel_v7000");
    builder_.Clock(1, 0, {1000});
    builder_.Source(10'000'000);
  }
  // A launch of `ns` under main;forward.
  void Launch(uint32_t id, uint64_t ns, std::string_view kernel) {
    builder_.Call(1, id, kLaunchKernel, 10'000 * id, 10'000 * id + 500, 100);
    builder_.Launch(1, id, 10'000 * id + 1, 100, 100,
                    builder_.Stack({kText + 0x10, kText + 0x110}));
    builder_.AddKernel(1, id, 10'000 * id + 1'000, 10'000 * id + 1'000 + ns, kernel);
  }

  test::TempDirectory directory_;
  test::ModelBuilder builder_;
};

TEST_F(FoldedTest, SamplesAndKernelsShareOneTree) {
  builder_.Sample(5'000, 100, 100, builder_.Stack({kText + 0x10, kText + 0x110}));
  Launch(1, 4'000, "k");
  Analysis analysis(builder_.Build());
  const Lines expected = {{"app;main;forward", 10'000'000},
                          {"app;main;forward;cudaLaunchKernel;[GPU_Kernel]k", 4'000}};
  EXPECT_EQ(test::Folded(analysis, In(TimeUnit::kNanoseconds)), expected);
  EXPECT_EQ(test::Folded(analysis, In(TimeUnit::kNanoseconds, TreeMode::kCpu)).size(), 1u);
  EXPECT_EQ(test::Folded(analysis, In(TimeUnit::kNanoseconds, TreeMode::kGpu)).size(), 1u);
}

// What the program would not do without being recorded, whatever it calls for that.
TEST_F(FoldedTest, SamplesInTheProfilerAreOneFrame) {
  builder_.Map(1, 100, 0x70000, 0x1000, 0, directory_ / "libxpu_inject.so");
  builder_.Map(1, 100, 0x80000, 0x1000, 0, directory_ / "libcupti.so.13");
  const uint64_t bpf = test::kKernelText + 0x1000;
  builder_.events.kernel_symbols.push_back({.address = bpf,
                                            .size_bytes = 0x100,
                                            .name = builder_.Text("bpf_prog_0a1b_launch"),
                                            .module = {}});
  for (const StackId stack :
       {builder_.Stack({kText + 0x10, 0x80010, 0x70010, kText + 0x110}),
        builder_.Stack({kText + 0x10, 0x80020}), builder_.Stack({kText + 0x10, bpf + 0x10}),
        builder_.Stack({kText + 0x10, kText + 0x110})}) {
    builder_.Sample(5'000, 100, 100, stack);
  }
  Analysis analysis(builder_.Build());
  ViewOptions options = In(TimeUnit::kSamples);
  EXPECT_EQ(test::Folded(analysis, options),
            (Lines{{"app;main;[profiler]", 3}, {"app;main;forward", 1}}));
  options.tree.paths.keep_internal_frames = true;
  EXPECT_EQ(test::Folded(analysis, options),
            (Lines{{"app;main;[profiler];libcupti.so.13+0x10;libxpu_inject.so+0x10;forward", 1},
                   {"app;main;[profiler];libcupti.so.13+0x20", 1},
                   {"app;main;[profiler];bpf_prog_0a1b_launch_[k]", 1},
                   {"app;main;forward", 1}}));
}

// A static libcudart lies in the program: its functions are not the user's, and the name of the
// call is there once.
TEST_F(FoldedTest, AStaticRuntimeReadsAsASharedOne) {
  builder_.Map(1, 100, 0x70000, 0x1000, 0, directory_ / "libxpu_inject.so");
  builder_.Call(1, 1, kLaunchKernel, 1'000, 1'500, 100);
  builder_.Launch(
      1, 1, 1'001, 100, 100,
      builder_.Stack({kText + 0x10, kText + 0x110, kText + 0x310, kText + 0x210, 0x70010}));
  builder_.AddKernel(1, 1, 2'000, 3'000, "k");
  Analysis analysis(builder_.Build());
  const Lines expected = {{"app;main;forward;cudaLaunchKernel;[GPU_Kernel]k", 1'000}};
  EXPECT_EQ(test::Folded(analysis, In(TimeUnit::kNanoseconds)), expected);
  ViewOptions all = In(TimeUnit::kNanoseconds);
  all.tree.paths.keep_internal_frames = true;
  const Lines kept = {
      {"app;main;forward;cudaLaunchKernel;libcudart_static_1;"
       "libxpu_inject.so+0x10;cudaLaunchKernel;[GPU_Kernel]k",
       1'000}};
  EXPECT_EQ(test::Folded(analysis, all), kept);
}

TEST_F(FoldedTest, PendingFailedAndUnknownLaunches) {
  builder_.Call(1, 1, kLaunchKernel, 1'000, 1'700, 100);  // pending, no stack
  builder_.Call(1, 2, kLaunchKernel, 2'000, 2'700, 100).return_value = 1;
  builder_.AddKernel(1, 3, 3'000, 3'030, "k");  // its launch was lost
  builder_.AddKernel(1, 4, 0, 0, "k");          // no time
  Analysis analysis(builder_.Build());
  const Lines expected = {
      {"[unknown];[unknown launch];[GPU_Kernel]k", 30},
      {"[unknown];[unknown launch];cudaLaunchKernel;[GPU_Launch_Pending]", 700}};
  EXPECT_EQ(test::Folded(analysis, In(TimeUnit::kNanoseconds)), expected);
}

// One node of a graph that was captured under main and is launched under forward.
TEST_F(FoldedTest, WorkOfAGraphNodeUnderBothStacks) {
  constexpr uint64_t kNode = uint64_t{6} << 32;
  builder_.Callback(1, ApiDomain::kRuntime, 311, "cudaGraphLaunch_v10000");
  builder_.Call(1, 1, kLaunchKernel, 1'000, 1'500, 100).graph_nodes = 1;
  builder_.Launch(1, 1, 1'001, 100, 100, builder_.Stack({kText + 0x10}));
  builder_.events.graph_nodes.push_back({.instance = {1},
                                         .time_ns = 1'100,
                                         .change = GraphNodeChange::kCreated,
                                         .node_id = kNode,
                                         .correlation_id = 1});
  builder_.events.graph_nodes.push_back({.instance = {1},
                                         .time_ns = 2'000,
                                         .change = GraphNodeChange::kCloned,
                                         .node_id = kNode + 5,
                                         .original_node_id = kNode});
  builder_.Call(1, 2, 311, 3'000, 3'500, 100);
  builder_.Launch(1, 2, 3'001, 100, 100, builder_.Stack({kText + 0x10, kText + 0x110}));
  builder_.AddKernel(1, 2, 4'000, 4'100, "k").graph_node_id = kNode + 5;
  builder_.AddKernel(1, 2, 4'100, 4'300, "k").graph_node_id = kNode + 9;
  builder_.AddKernel(1, 2, 4'300, 4'700, "k").graph_node_id = uint64_t{9} << 32;
  Analysis analysis(builder_.Build());
  const std::string launch = "app;main;forward;cudaGraphLaunch";
  const std::string captured = ";[captured at]";
  ViewOptions options = In(TimeUnit::kNanoseconds);
  const Lines both = {{launch + captured + ";main;cudaLaunchKernel;[GPU_Kernel]k", 100},
                      {launch + captured + ";[unknown];[GPU_Kernel]k", 200},
                      {launch + captured + ";[before the recording];[GPU_Kernel]k", 400}};
  EXPECT_EQ(test::Folded(analysis, options), both);
  options.tree.paths.graph_stacks = GraphStacks::kLaunch;
  EXPECT_EQ(test::Folded(analysis, options), (Lines{{launch + ";[GPU_Kernel]k", 700}}));
  options.tree.paths.graph_stacks = GraphStacks::kCreation;
  const Lines creation = {{"app;main;cudaLaunchKernel;[GPU_Kernel]k", 100},
                          {"app" + captured + ";[unknown];[GPU_Kernel]k", 200},
                          {"app" + captured + ";[before the recording];[GPU_Kernel]k", 400}};
  EXPECT_EQ(test::Folded(analysis, options), creation);
}

// Recorded with --no-inject: the time is that of the call, in the merged mode alone.
TEST_F(FoldedTest, LaunchesSeenByProbes) {
  ElfBuilder("kernels").Symbol("_Z7softmaxIfEvPT_i", 0x0, 0x100).WriteTo(directory_ / "kernels");
  builder_.Map(1, 100, 0x90000, ElfBuilder::kTextBytes, ElfBuilder::kTextOffset,
               directory_ / "kernels", "kernels");
  builder_.events.probes = {{.probe = 1,
                             .purpose = ProbePurpose::kRuntimeLaunch,
                             .function = builder_.Text("cudaLaunchKernel"),
                             .path = {}},
                            {.probe = 2,
                             .purpose = ProbePurpose::kDriverLaunch,
                             .function = builder_.Text("cuLaunchKernel"),
                             .path = {}}};
  const auto hit = [&](uint32_t probe, uint64_t time_ns, bool is_return, uint64_t kernel) {
    ProbeHit& made = builder_.events.probe_hits.emplace_back();
    made.probe = probe;
    made.time_ns = time_ns;
    made.is_return = is_return;
    made.pid = 100;
    made.tid = 100;
    made.kernel = kernel;
    if (!is_return) made.stack = builder_.Stack({kText + 0x10, kText + 0x110});
  };
  hit(1, 1'000, false, 0x90000);
  hit(2, 1'100, false, 0xdead);
  hit(2, 1'200, true, 0);
  hit(1, 1'300, true, 0);
  hit(1, 2'000, false, 0x123);  // no function is there
  hit(1, 2'050, true, 0);
  hit(2, 3'000, false, 0x90000);  // a handle of the driver
  hit(2, 3'007, true, 0);
  hit(1, 4'000, false, 0x90000);
  hit(1, 4'100, true, 0);
  builder_.events.probe_hits.back().return_value = 98;
  builder_.events.recording_info.emplace_back().launch_stacks = LaunchStackSource::kProbes;
  Analysis analysis(builder_.Build());
  const std::string path = "app;main;forward;";
  const Lines expected = {
      {path + "cudaLaunchKernel;[GPU_Launch]void softmax<float>(float*, int)", 300},
      {path + "cudaLaunchKernel;[GPU_Launch]", 50},
      {path + "cuLaunchKernel;[GPU_Launch]", 7}};
  EXPECT_EQ(test::Folded(analysis, In(TimeUnit::kNanoseconds)), expected);
  std::string notes;
  EXPECT_TRUE(test::Folded(analysis, In(TimeUnit::kNanoseconds, TreeMode::kGpu), &notes).empty());
  EXPECT_EQ(notes,
            "no stacks to show: recorded without injection: no GPU times\n  hint: "
            "--mode merge shows launches\n");
  const std::string summary =
      test::Written([&](Output& output) { WriteSummary(analysis, {}, output); });
  EXPECT_NE(summary.find("\nlaunches  3 recorded by probes, 1 failed, matched by nesting: no GPU "
                         "times\n          (recorded without injection)\n"),
            std::string::npos);
  EXPECT_EQ(summary.find("pending"), std::string::npos);
}

TEST_F(FoldedTest, ANoteWhenThereIsNothingToShow) {
  const auto note = [](test::ModelBuilder& builder, TreeMode mode) {
    Analysis analysis(builder.Build());
    std::string notes;
    EXPECT_TRUE(test::Folded(analysis, In(TimeUnit::kNanoseconds, mode), &notes).empty());
    return notes;
  };
  test::ModelBuilder empty;
  EXPECT_EQ(note(empty, TreeMode::kCpuAndGpu), "");
  test::ModelBuilder no_gpu;
  EXPECT_EQ(note(no_gpu, TreeMode::kGpu), "no stacks to show: the capture has no GPU records\n");
  test::ModelBuilder cpu_only;
  cpu_only.events.recording_info.emplace_back().settings = cpu_only.Text("--cpu-only -F 99");
  cpu_only.Sample(1, 1, 1, cpu_only.Stack({0x10}));
  EXPECT_EQ(note(cpu_only, TreeMode::kGpu),
            "no stacks to show: the GPU was not recorded (--cpu-only)\n  hint: --mode "
            "merge shows CPU samples\n");
  test::ModelBuilder untimed;
  untimed.AddKernel(1, 1, 0, 0, "k");
  EXPECT_EQ(note(untimed, TreeMode::kCpuAndGpu),
            "no stacks to show: the GPU records have no times\n");
  Launch(1, 10, "k");
  EXPECT_EQ(note(builder_, TreeMode::kCpu),
            "no stacks to show: the capture has no CPU samples\n  hint: --mode gpu "
            "shows GPU work\n");
}

TEST_F(FoldedTest, UnitsAndWhatIsLeftOut) {
  Launch(1, 1'400, "a");
  Launch(2, 1'300, "b");
  Launch(3, 300, "c");
  builder_.Sample(5'000, 100, 100, builder_.Stack({kText + 0x10}));
  Analysis analysis(builder_.Build());
  std::string notes;
  const std::string prefix = "app;main;forward;cudaLaunchKernel;[GPU_Kernel]";
  const Lines in_us = {{"app;main", 10'000}, {prefix + "a", 2}, {prefix + "b", 1}};
  EXPECT_EQ(test::Folded(analysis, In(TimeUnit::kMicroseconds), &notes), in_us);
  EXPECT_EQ(notes,
            "1 stack rounds to 0 and is left out, 300 ns in total\n  hint: --unit ns shows them\n");
  notes.clear();
  const Lines in_samples = {{"app;main", 1}};
  EXPECT_EQ(test::Folded(analysis, In(TimeUnit::kSamples), &notes), in_samples);
  EXPECT_EQ(notes.substr(0, 55), "3 stacks round to 0 and are left out, 3000 ns in total\n");
}

TEST_F(FoldedTest, SumsEqualTheRawEvents) {
  std::mt19937_64 random(4);
  uint64_t gpu_ns = 0;
  for (uint32_t id = 1; id <= 300; ++id) {
    const uint64_t ns = random() % 5'000;
    gpu_ns += ns;
    Launch(id, ns, "kernel" + std::to_string(random() % 20));
    builder_.Sample(random() % 1'000'000, 100, 100,
                    builder_.Stack({kText + 0x10, kText + 0x100 * (random() % 16)}));
  }
  Analysis analysis(builder_.Build());
  const auto sum = [&](const ViewOptions& options) {
    const Lines lines = test::Folded(analysis, options);
    return std::accumulate(lines.begin(), lines.end(), uint64_t{0},
                           [](uint64_t total, const auto& line) { return total + line.second; });
  };
  const uint64_t all_ns = gpu_ns + 300 * 10'000'000ull;
  EXPECT_EQ(sum(In(TimeUnit::kNanoseconds, TreeMode::kGpu)), gpu_ns);
  EXPECT_EQ(sum(In(TimeUnit::kNanoseconds)), all_ns);
  EXPECT_EQ(sum(In(TimeUnit::kMicroseconds)), (all_ns + 500) / 1000);
  EXPECT_EQ(sum(In(TimeUnit::kSamples, TreeMode::kCpu)), 300u);
  EXPECT_EQ(sum(In(TimeUnit::kSamples)), (all_ns + 5'000'000) / 10'000'000);
  for (const GroupBy by :
       {GroupBy::kThread, GroupBy::kProcess, GroupBy::kStream, GroupBy::kDevice}) {
    ViewOptions options = In(TimeUnit::kMicroseconds);
    options.tree.by = by;
    options.reverse = by == GroupBy::kStream;
    EXPECT_EQ(sum(options), (all_ns + 500) / 1000);
    options.unit = TimeUnit::kNanoseconds;
    EXPECT_EQ(sum(options), all_ns);
  }
}

// Two GPUs, two threads, a call whose kernel never came.
TEST_F(FoldedTest, WhatComesFirst) {
  builder_.Process(ProcessEventKind::kName, 2, 100, 101, "worker");
  builder_.Sample(5'000, 100, 101, builder_.Stack({kText + 0x10}));
  Launch(1, 4'000, "k");
  Launch(2, 300, "k");
  builder_.events.kernels.back().device_id = 1;
  builder_.events.kernels.back().stream_id = 9;
  builder_.Call(1, 3, kLaunchKernel, 90'000, 90'020, 100);
  Analysis analysis(builder_.Build());
  const std::string kernel = "app;main;forward;cudaLaunchKernel;[GPU_Kernel]k";
  const std::string pending = "app;[unknown launch];cudaLaunchKernel;[GPU_Launch_Pending]";
  const auto folded = [&](GroupBy by) {
    ViewOptions options = In(TimeUnit::kNanoseconds);
    options.tree.by = by;
    return test::Folded(analysis, options);
  };
  EXPECT_EQ(folded(GroupBy::kNothing),
            (Lines{{"worker;main", 10'000'000}, {kernel, 4'300}, {pending, 20}}));
  EXPECT_EQ(folded(GroupBy::kThread), (Lines{{"worker/101;worker;main", 10'000'000},
                                             {"app/100;" + kernel, 4'300},
                                             {"app/100;" + pending, 20}}));
  EXPECT_EQ(folded(GroupBy::kProcess), (Lines{{"app/100;worker;main", 10'000'000},
                                              {"app/100;" + kernel, 4'300},
                                              {"app/100;" + pending, 20}}));
  EXPECT_EQ(folded(GroupBy::kStream), (Lines{{"[CPU];worker;main", 10'000'000},
                                             {"GPU0/stream7;" + kernel, 4'000},
                                             {"GPU1/stream9;" + kernel, 300},
                                             {"[CPU];" + pending, 20}}));
  EXPECT_EQ(folded(GroupBy::kDevice), (Lines{{"[CPU];worker;main", 10'000'000},
                                             {"GPU0;" + kernel, 4'000},
                                             {"GPU1;" + kernel, 300},
                                             {"[CPU];" + pending, 20}}));
}

TEST_F(FoldedTest, InnermostFirstAndTheGroupBeforeIt) {
  Launch(1, 4'000, "k");
  Analysis analysis(builder_.Build());
  ViewOptions options = In(TimeUnit::kNanoseconds);
  options.reverse = true;
  const std::string reversed = "[GPU_Kernel]k;cudaLaunchKernel;forward;main;app";
  EXPECT_EQ(test::Folded(analysis, options), (Lines{{reversed, 4'000}}));
  options.tree.by = GroupBy::kDevice;
  EXPECT_EQ(test::Folded(analysis, options), (Lines{{"GPU0;" + reversed, 4'000}}));
}

TEST_F(FoldedTest, PathsThatReadTheSameAreOneLine) {
  Launch(1, 10, "a;b");
  Launch(2, 20, "a:b");
  Analysis analysis(builder_.Build());
  const Lines expected = {{"app;main;forward;cudaLaunchKernel;[GPU_Kernel]a:b", 30}};
  EXPECT_EQ(test::Folded(analysis, In(TimeUnit::kNanoseconds)), expected);
}

TEST(SampleWeight, OfSourcesThatCountOtherThings) {
  test::ModelBuilder builder;
  builder.events.sample_sources = {
      {.source = 1, .name = {}, .frequency_hz = 50, .period = 7, .unit = builder.Text("ns")},
      {.source = 2,
       .name = {},
       .frequency_hz = 50,
       .period = 1000,
       .unit = builder.Text("events")}};
  const Model model = builder.Build();
  EXPECT_EQ(SampleWeightNs(model, {}, 1), 7u);
  EXPECT_EQ(SampleWeightNs(model, {}, 2), 20'000'000u);
  EXPECT_EQ(SampleWeightNs(model, {}, 3), 10'101'010u);  // 99 Hz
  EXPECT_EQ(SampleUnitNs(model, {}), 7u);
}

}  // namespace
}  // namespace xpu
