#include "report/analysis/filter.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "report/analysis/analysis.h"
#include "report/query/call_tree_builder.h"
#include "report/query/statistics.h"
#include "tests/unit/durations.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

using test::kMs;
constexpr uint64_t kStart = 1'000 * kMs;

// Two processes, each with one call, kernel and sample; the first also copies.
class FilterTest : public testing::Test {
 protected:
  FilterTest() {
    builder_.events.recording_info.emplace_back().start_ns = kStart;
    Process(10, 0xa, 0, 7, kStart + 10 * kMs, "_Z4gemmv");
    Process(20, 0xb, 1, 8, kStart + 30 * kMs, "_Z7softmaxv");
    auto& copy = builder_.events.memcpys.emplace_back();
    copy.instance = InstanceId{0xa};
    copy.correlation_id = 99;
    copy.stream_id = 7;
    copy.start_ns = kStart + 50 * kMs;
    copy.end_ns = kStart + 51 * kMs;
  }

  void Process(uint32_t pid, uint64_t instance, uint32_t device, uint32_t stream, uint64_t at_ns,
               std::string_view kernel) {
    const std::string name = "app" + std::to_string(pid);
    builder_.Process(ProcessEventKind::kExec, kStart, pid, pid, name);
    builder_.Clock(instance, 0, {kStart});
    builder_.Callback(instance, ApiDomain::kRuntime, 1, "cudaLaunchKernel_v7000");
    GpuProcess& process = builder_.events.gpu_processes.emplace_back();
    process.instance = InstanceId{instance};
    process.pid = process.namespace_pid = pid;
    ApiCall& call = builder_.Call(instance, 1, 1, at_ns, at_ns + kMs, pid);
    call.domain = ApiDomain::kRuntime;
    builder_.Launch(instance, 1, at_ns, pid, pid, builder_.Stack({0x1000}));
    Kernel& added = builder_.AddKernel(instance, 1, at_ns + 2 * kMs, at_ns + 5 * kMs, kernel);
    added.device_id = device;
    added.stream_id = stream;
    builder_.Sample(at_ns + 3 * kMs, pid, pid, builder_.Stack({0x1000}));
  }

  // "samples calls work", of the part.
  std::string Part(FilterOptions options) {
    Analysis analysis(builder_.Build());
    analysis.shown = SelectPart(options, analysis).value();
    for (const GpuWork& work : analysis.Work()) {
      if (work.launch == GpuWork::kNoLaunch) continue;
      EXPECT_TRUE(analysis.shown.launches.Has(work.launch));
    }
    EXPECT_EQ(analysis.counts().launches_seen, analysis.Launches().size());
    return std::to_string(analysis.CpuSamples().size()) + " " +
           std::to_string(analysis.Launches().size()) + " " +
           std::to_string(analysis.Work().size());
  }

  test::ModelBuilder builder_;
};

FilterOptions Of(void (*set)(FilterOptions&)) {
  FilterOptions options;
  set(options);
  return options;
}

TEST_F(FilterTest, NothingAskedKeepsAll) { EXPECT_EQ(Part({}), "2 2 3"); }
TEST_F(FilterTest, Process) {
  EXPECT_EQ(Part(Of([](auto& o) { o.pids = {10}; })), "1 1 2");
}
TEST_F(FilterTest, SeveralProcesses) {
  EXPECT_EQ(Part(Of([](auto& o) { o.pids = {20, 10}; })), "2 2 3");
}
TEST_F(FilterTest, Thread) {
  EXPECT_EQ(Part(Of([](auto& o) { o.tids = {20}; })), "1 1 1");
}
TEST_F(FilterTest, Comm) {
  EXPECT_EQ(Part(Of([](auto& o) { o.comms = {"app20"}; })), "1 1 1");
}
TEST_F(FilterTest, CommIsNoPart) {
  EXPECT_EQ(Part(Of([](auto& o) { o.comms = {"app"}; })), "0 0 0");
}
TEST_F(FilterTest, Device) {
  EXPECT_EQ(Part(Of([](auto& o) { o.devices = {1}; })), "0 1 1");
}
TEST_F(FilterTest, StreamIsAboutCopiesToo) {
  EXPECT_EQ(Part(Of([](auto& o) { o.streams = {7}; })), "0 1 2");
}
TEST_F(FilterTest, KernelByDemangledName) {
  EXPECT_EQ(Part(Of([](auto& o) { o.kernel = "^(gemm|conv)[(]"; })), "0 1 1");
}
TEST_F(FilterTest, ApiAndItsWork) {
  EXPECT_EQ(Part(Of([](auto& o) { o.api = "^cudaLaunch"; })), "0 2 2");
}
TEST_F(FilterTest, AllMustAgree) {
  EXPECT_EQ(Part(Of([](auto& o) {
              o.pids = {10};
              o.devices = {1};
            })),
            "0 0 0");
}
TEST_F(FilterTest, TimeFromTheStart) {
  EXPECT_EQ(Part(Of([](auto& o) { o.time = {30 * kMs, 50 * kMs}; })), "1 1 1");
}
// The kernel runs into the range, its call was before.
TEST_F(FilterTest, ACallStaysWithItsWork) {
  EXPECT_EQ(Part(Of([](auto& o) { o.time = {14 * kMs, 20 * kMs}; })), "0 1 1");
}
TEST_F(FilterTest, TheEndIsOutside) {
  EXPECT_EQ(Part(Of([](auto& o) { o.time = {0, 10 * kMs}; })), "0 0 0");
}

// The kernel of the first process, whose call begins 10 ms after the start.
TEST_F(FilterTest, WorkWithoutTimesIsAtTheTimeOfItsCall) {
  Kernel kernel = builder_.events.kernels[0];
  EXPECT_EQ(kernel.instance, InstanceId{0xa});
  kernel.start_ns = kernel.end_ns = 0;
  builder_.events.kernels.push_back(kernel);
  Analysis analysis(builder_.Build());
  const auto work_in = [&](uint64_t from_ms, uint64_t to_ms) {
    FilterOptions options;
    options.time = {from_ms * kMs, to_ms * kMs};
    analysis.shown = SelectPart(options, analysis).value();
    return analysis.Work().size();
  };
  EXPECT_EQ(work_in(0, 100), analysis.correlation.work.size());
  EXPECT_EQ(work_in(10, 11), 1u);
  EXPECT_EQ(work_in(14, 20), 1u);  // only the one with times runs then
}

// One thread captured a node of a graph, another one replays it.
TEST_F(FilterTest, TheCallThatMadeANodeIsNoCallOfItsReplay) {
  constexpr uint64_t kNode = uint64_t{6} << 32;
  builder_.events.graph_nodes.push_back({.instance = {0xa},
                                         .time_ns = kStart + 10 * kMs,
                                         .change = GraphNodeChange::kCreated,
                                         .node_id = kNode,
                                         .correlation_id = 1});
  builder_.events.graph_nodes.push_back({.instance = {0xa},
                                         .time_ns = kStart + 15 * kMs,
                                         .change = GraphNodeChange::kCloned,
                                         .node_id = kNode + 5,
                                         .original_node_id = kNode});
  builder_.Call(0xa, 2, 1, kStart + 20 * kMs, kStart + 21 * kMs, 11);
  builder_.Launch(0xa, 2, kStart + 20 * kMs, 10, 11, builder_.Stack({0x1000}));
  builder_.AddKernel(0xa, 2, kStart + 22 * kMs, kStart + 23 * kMs, "k").graph_node_id = kNode + 5;
  Analysis analysis(builder_.Build());
  FilterOptions options;
  options.tids = {11};
  analysis.shown = SelectPart(options, analysis).value();
  EXPECT_EQ(analysis.Work().size(), 1u);
  EXPECT_EQ(analysis.Launches().size(), 2u);  // the node's path needs its call
  const std::vector<Statistics> calls = ApiTimes(analysis);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].count, 1u);
}

TEST_F(FilterTest, OverheadsAndCompilingAreOfTheirProcess) {
  Overhead& overhead = builder_.events.overheads.emplace_back();
  overhead.instance = InstanceId{0xb};
  overhead.start_ns = kStart + kMs;
  overhead.end_ns = kStart + 2 * kMs;
  JitOperation& jit = builder_.events.jit_operations.emplace_back();
  jit.instance = InstanceId{0xa};
  jit.start_ns = kStart + 3 * kMs;
  jit.end_ns = kStart + 4 * kMs;
  const auto left = [this](void (*set)(FilterOptions&)) {
    test::ModelBuilder copy;
    copy.events = builder_.events;
    Analysis analysis(copy.Build());
    analysis.shown = SelectPart(Of(set), analysis).value();
    return std::pair(analysis.Overheads().size(), analysis.JitOperations().size());
  };
  using Counts = std::pair<size_t, size_t>;
  EXPECT_EQ(left([](auto& o) { o.pids = {10}; }), Counts(0, 1));
  EXPECT_EQ(left([](auto& o) { o.pids = {20}; }), Counts(1, 0));
  EXPECT_EQ(left([](auto& o) { o.time = {0, 2 * kMs}; }), Counts(1, 0));
  EXPECT_EQ(left([](auto& o) { o.devices = {0}; }), Counts(0, 0));  // of no GPU's work
}

TEST_F(FilterTest, SaysWhatThePartIs) {
  FilterOptions options;
  EXPECT_EQ(options.Text(), "");
  options.pids = {1, 2};
  options.comms = {"a b"};
  options.kernel = "gemm";
  options.time = {5, 70};
  options.time_text = "5ns-70ns";
  EXPECT_EQ(options.Text(), "--pid 1,2 --comm 'a b' --kernel gemm --time 5ns-70ns");
  const Analysis analysis(builder_.Build());
  EXPECT_EQ(SelectPart(options, analysis)->filter_text, options.Text());
}

TEST_F(FilterTest, NoRegularExpression) {
  const Analysis analysis(builder_.Build());
  FilterOptions options;
  options.kernel = "gemm(";
  const Result<Selection> part = SelectPart(options, analysis);
  ASSERT_FALSE(part.ok());
  EXPECT_EQ(part.error().kind, ErrorKind::kUsage);
  EXPECT_TRUE(part.error().message.starts_with("--kernel: invalid regular expression 'gemm(': "));
}

TEST(TimeRangeTest, Forms) {
  const auto text = [](std::string_view given) {
    Result<TimeRange> range = ParseTimeRange(given);
    if (!range.ok()) return range.error().message;
    return std::to_string(range->start_ns) + " " + std::to_string(range->end_ns);
  };
  EXPECT_EQ(text("1.5s-2s"), "1500000000 2000000000");
  EXPECT_EQ(text("1.5-2"), "1500000000 2000000000");
  EXPECT_EQ(text("300us-0.7ms"), "300000 700000");
  EXPECT_EQ(text("7ns-"), "7 18446744073709551615");
  EXPECT_EQ(text("-1s"), "0 1000000000");
  EXPECT_EQ(text("2s-1s"), "'2s-1s': the end must be after the start");
  EXPECT_EQ(text("1s"), "'1s': expected FROM-TO");
  EXPECT_EQ(text("-"), "'-': expected FROM-TO");
  EXPECT_EQ(text(""), "'': expected FROM-TO");
  EXPECT_EQ(text("x-1s"), "'x-1s': the start is not a valid time");
  EXPECT_EQ(text("1s-2h"), "'1s-2h': the end is not a valid time");
  EXPECT_EQ(text("1s--2s"), "'1s--2s': the end is not a valid time");
  EXPECT_EQ(text("1e300s-"), "'1e300s-': the start is not a valid time");
}

TEST(NamePatternTest, LongNamesNeedNoStack) {
  const NamePattern pattern = NamePattern::Compile("^(a|b)*c$", "x").value();
  EXPECT_TRUE(pattern.FoundIn(std::string(1 << 20, 'a') + "c"));
  EXPECT_FALSE(pattern.FoundIn(std::string(1 << 20, 'a')));
}

TEST_F(FilterTest, RanksWithWhatTheyStartedAndHosts) {
  builder_.events.recording_info.back().host_name = builder_.Text("node3");
  for (const uint32_t pid : {10, 20}) {
    RankInfo& info = builder_.events.rank_infos.emplace_back();
    info.instance = InstanceId{pid == 10 ? 0xaull : 0xbull};
    info.pid = pid;
    info.rank = static_cast<int32_t>(pid / 10);
  }
  // A data loader of the second rank.
  builder_.Process(ProcessEventKind::kFork, kStart + kMs, 21, 21, {}, 20, 20);
  builder_.Sample(kStart + 40 * kMs, 21, 21, builder_.Stack({0x1000}));
  const Analysis analysis(builder_.Build());
  const auto part = [&](std::vector<uint32_t> ranks, std::vector<std::string> hosts) {
    FilterOptions options;
    options.ranks = std::move(ranks);
    options.hosts = std::move(hosts);
    Analysis some = analysis;
    some.shown = SelectPart(options, some).value();
    return options.Text() + ": " + std::to_string(some.CpuSamples().size()) + " " +
           std::to_string(some.Work().size());
  };
  EXPECT_EQ(part({1}, {}), "--rank 1: 1 2");
  EXPECT_EQ(part({2}, {}), "--rank 2: 2 1");
  EXPECT_EQ(part({1, 3}, {"node3"}), "--rank 1,3 --host node3: 1 2");
  EXPECT_EQ(part({}, {"node3"}), "--host node3: 3 3");
  EXPECT_EQ(part({}, {"node4"}), "--host node4: 0 0");
}

TEST_F(FilterTest, Containers) {
  const std::string first = "aaaa" + std::string(60, '1');
  const std::string second = "bbbb" + std::string(60, '2');
  const auto add = [&](uint64_t time_ns, uint32_t pid, const std::string& id) {
    ContainerInfo& info = builder_.events.container_infos.emplace_back();
    info.time_ns = time_ns;
    info.pid = pid;
    info.id = builder_.Text(id);
    return &info;
  };
  ContainerInfo* of_pod = add(kStart, 10, first);
  of_pod->pod_name = builder_.Text("trainer-0");
  of_pod->pod_namespace = builder_.Text("ml");
  of_pod->name = builder_.Text("main");
  add(kStart, 20, second);
  // Forked by the second one; the other leaves its container by an exec.
  builder_.Process(ProcessEventKind::kFork, kStart + kMs, 21, 21, {}, 20, 20);
  builder_.Sample(kStart + 40 * kMs, 21, 21, builder_.Stack({0x1000}));
  builder_.Process(ProcessEventKind::kFork, kStart + kMs, 22, 22, {}, 20, 20);
  add(kStart + 50 * kMs, 22, second);
  add(kStart + 60 * kMs, 22, "");
  builder_.Sample(kStart + 55 * kMs, 22, 22, builder_.Stack({0x1000}));
  builder_.Sample(kStart + 65 * kMs, 22, 22, builder_.Stack({0x1000}));
  Analysis analysis(builder_.Build());
  const auto part = [&](const std::string& name) {
    FilterOptions options;
    options.containers = {name};
    Analysis some = analysis;
    some.shown = SelectPart(options, some).value();
    return options.Text() + ": " + std::to_string(some.CpuSamples().size()) + " " +
           std::to_string(some.Work().size());
  };
  EXPECT_EQ(part("ml/trainer-0/main"), "--container ml/trainer-0/main: 1 2");
  EXPECT_EQ(part("trainer-0"), "--container trainer-0: 1 2");
  EXPECT_EQ(part("main"), "--container main: 1 2");
  EXPECT_EQ(part("aaaa11"), "--container aaaa11: 1 2");
  EXPECT_EQ(part("bbbb22222222"), "--container bbbb22222222: 3 1");
  EXPECT_EQ(part("bbb"), "--container bbb: 0 0");
  EXPECT_EQ(part("ml"), "--container ml: 0 0");
  const CallTree tree =
      BuildCallTree(analysis, {.mode = TreeMode::kGpu, .by = GroupBy::kContainer});
  std::set<std::string> groups;
  for (const CallTree::Node& node : tree.nodes()) {
    if (!node.parent && node.self_count == 0) groups.insert(analysis.frames[node.frame].Label());
  }
  EXPECT_TRUE(groups.contains("ml/trainer-0/main"));
  EXPECT_TRUE(groups.contains("bbbb22222222"));
}

// Two containers never have the same name.
TEST_F(FilterTest, ContainersOfOneName) {
  for (const uint32_t pid : {10, 20}) {
    ContainerInfo& info = builder_.events.container_infos.emplace_back();
    info.time_ns = kStart;
    info.pid = pid;
    info.id = builder_.Text(std::string(64, pid == 10 ? 'a' : 'b'));
    info.name = builder_.Text("web");
  }
  const Analysis analysis(builder_.Build());
  const ContainerInfo* of = analysis.containers.Of(analysis.processes.At(20, kStart), kStart);
  ASSERT_NE(of, nullptr);
  EXPECT_EQ(analysis.containers.NameOf(*of), "web (bbbbbbbbbbbb)");
  EXPECT_TRUE(analysis.containers.IsCalled(*of, "web"));
}

}  // namespace
}  // namespace xpu
