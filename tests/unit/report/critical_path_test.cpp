#include "report/critical_path/critical_path.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "format/base/text.h"
#include "report/critical_path/what_if.h"
#include "report/views/summary/summary_hints.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

constexpr uint64_t kGpu = 0xa;
constexpr uint32_t kPid = 10;
constexpr uint32_t kWorker = 11;
constexpr uint32_t kSynchronize = 131;
constexpr uint32_t kStreamWaitEvent = 147;

TEST(DependencyGraphTest, TheLongestPathIsTheOneThatComesLast) {
  DependencyGraph graph;
  const uint32_t begin = graph.AddNode(0);
  const uint32_t left = graph.AddNode(40);
  const uint32_t right = graph.AddNode(70);
  const uint32_t end = graph.AddNode(100);
  graph.AddActivity({.from = begin, .to = left, .index = 1});
  graph.AddActivity({.from = begin, .to = right, .index = 2});
  graph.AddDependency({.from = left, .to = end, .ns = 10, .index = 3});
  graph.AddDependency({.from = right, .to = end, .ns = 5, .index = 4});
  graph.AddActivity({.from = end, .to = begin, .index = 5});  // back in time
  graph.Finish();
  std::vector<std::pair<uint32_t, uint64_t>> path;
  for (const Edge& edge : graph.PathTo(end, 0)) path.emplace_back(edge.index, edge.ns);
  EXPECT_EQ(path, (std::vector<std::pair<uint32_t, uint64_t>>{{2, 70}, {4, 30}}));
  const auto with = [&](uint32_t index, uint64_t ns) {
    return graph.Reevaluate(end, 0,
                            [&](const Edge& edge) { return edge.index == index ? ns : edge.ns; });
  };
  EXPECT_EQ(with(0, 0), 100u);
  EXPECT_EQ(with(2, 60), 90u);
  EXPECT_EQ(with(2, 10), 50u);  // now the other one comes last
  EXPECT_EQ(with(1, 0), 100u);
  EXPECT_EQ(with(1, 120), 130u);
}

TEST(DependencyGraphTest, NodesOfOneTimeThatWaitForEachOtherEnd) {
  DependencyGraph graph;
  const uint32_t begin = graph.AddNode(0);
  const uint32_t a = graph.AddNode(10);
  const uint32_t b = graph.AddNode(10);
  graph.AddActivity({.from = begin, .to = a});
  graph.AddDependency({.from = a, .to = b});
  graph.AddDependency({.from = b, .to = a});
  graph.Finish();
  EXPECT_EQ(graph.Reevaluate(b, 0, [](const Edge& edge) { return edge.ns; }), 10u);
  EXPECT_EQ(graph.PathTo(b, 0).size(), 1u);
}

// One process, one GPU; times in ns, the GPU's clock is the CPU's. Calls take 10 ns.
class CriticalPathTest : public testing::Test {
 protected:
  CriticalPathTest() {
    builder_.Process(ProcessEventKind::kExec, 0, kPid, kPid, "app");
    builder_.Process(ProcessEventKind::kExisting, 0, kPid, kWorker, "worker");
    builder_.Clock(kGpu, 0, {0});
    builder_.Callback(kGpu, ApiDomain::kRuntime, test::kLaunchKernel, "cudaLaunchKernel");
    builder_.Callback(kGpu, ApiDomain::kRuntime, kSynchronize, "cudaStreamSynchronize");
    builder_.Callback(kGpu, ApiDomain::kRuntime, kStreamWaitEvent, "cudaStreamWaitEvent");
    GpuProcess& process = builder_.events.gpu_processes.emplace_back();
    process.instance = InstanceId{kGpu};
    process.pid = process.namespace_pid = kPid;
    builder_.Source(100);
  }

  uint32_t Call(uint32_t function, uint64_t start_ns, uint64_t end_ns, uint32_t tid = kPid) {
    const uint32_t id = ++calls_;
    builder_.Call(kGpu, id, function, start_ns, end_ns, tid);
    builder_.Launch(kGpu, id, start_ns, kPid, tid, builder_.Stack({0x1000, tid}));
    return id;
  }
  // A kernel that runs from `start_ns` to `end_ns`.
  void Launch(uint64_t call_ns, uint64_t start_ns, uint64_t end_ns, std::string_view name,
              uint32_t stream = 7, uint32_t tid = kPid) {
    const uint32_t id = Call(test::kLaunchKernel, call_ns, call_ns + 10, tid);
    builder_.AddKernel(kGpu, id, start_ns, end_ns, name).stream_id = stream;
  }
  // CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE is 3, STREAM_WAIT_EVENT 2.
  void Synchronize(uint64_t start_ns, uint64_t end_ns, uint32_t stream = 7) {
    AddSynchronization(Call(kSynchronize, start_ns, end_ns), 3, start_ns, end_ns, stream);
  }
  void StreamWait(uint64_t time_ns, uint32_t stream) {
    AddSynchronization(Call(kStreamWaitEvent, time_ns, time_ns + 10), 2, time_ns, time_ns + 10,
                       stream);
  }
  OffCpuWait& Wait(uint32_t tid, uint64_t start_ns, uint64_t ready_ns, uint64_t end_ns,
                   uint32_t waker_tid) {
    OffCpuWait& wait = builder_.events.off_cpu_waits.emplace_back();
    wait.pid = kPid;
    wait.tid = tid;
    wait.start_ns = start_ns;
    wait.ready_ns = ready_ns;
    wait.end_ns = end_ns;
    wait.state = OffCpuState::kBlocked;
    wait.system_call = SYS_futex;
    wait.stack_flags = kStackComplete;
    if (waker_tid != 0) {
      wait.waker = OffCpuWaker::kThread;
      wait.waker_pid = kPid;
      wait.waker_tid = waker_tid;
    }
    return wait;
  }
  void Sample(uint64_t time_ns, uint32_t tid) { builder_.Sample(time_ns, kPid, tid, {}); }

  CriticalPath& Built() {
    if (!critical_) {
      analysis_ = std::make_unique<Analysis>(builder_.Build());
      paths_ = std::make_unique<CallPaths>(*analysis_, PathOptions{});
      critical_ = std::make_unique<CriticalPath>(*analysis_, *paths_, StepOptions{});
    }
    return *critical_;
  }
  // "CPU 10 100-200" for each stretch: what, which thread, from when to when.
  std::vector<std::string> Path() {
    std::vector<std::string> lines;
    for (const CriticalSegment& segment : Built().segments()) {
      lines.push_back(Format("{}{} {} {}-{}", segment.edge.is_assumed ? "assumed " : "",
                             EdgeKindName(segment.edge.kind), Built().OwnerOf(segment.edge).tid,
                             segment.start_ns, segment.end_ns));
    }
    return lines;
  }
  // How long all of it takes with the speedup, and with what it is about taking no time.
  std::pair<uint64_t, uint64_t> With(std::string_view speedup) {
    WhatIf what_if(*analysis_, *paths_, Built());
    const Prediction prediction = what_if.Evaluate(ParseSpeedup(speedup).value());
    matches_ = prediction.matches;
    return {prediction.predicted_ns, prediction.least_ns};
  }

  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
  std::unique_ptr<CallPaths> paths_;
  std::unique_ptr<CriticalPath> critical_;
  bool matches_ = false;  // With

 private:
  void AddSynchronization(uint32_t id, uint32_t type, uint64_t start_ns, uint64_t end_ns,
                          uint32_t stream) {
    Synchronization& wait = builder_.events.synchronizations.emplace_back();
    wait.instance = InstanceId{kGpu};
    wait.type = type;
    wait.start_ns = start_ns;
    wait.end_ns = end_ns;
    wait.correlation_id = id;
    wait.stream_id = stream;
  }
  uint32_t calls_ = 0;
};

using Lines = std::vector<std::string>;
using Times = std::pair<uint64_t, uint64_t>;

TEST_F(CriticalPathTest, ASlowKernelThatTheProgramWaitsFor) {
  Launch(100, 115, 515, "slow");
  Synchronize(120, 520);
  EXPECT_EQ(Path(), (Lines{"CUDA call 10 100-110", "launch latency 10 110-115", "kernel 10 115-515",
                           "end of GPU wait 10 515-520"}));
  EXPECT_EQ(With("kernel:slow=0.5"), (Times{220, 20}));
  EXPECT_EQ(With("kernel:fast=0.5"), (Times{420, 420}));
  EXPECT_FALSE(matches_);
  EXPECT_EQ(With("thread:app=0"), (Times{410, 410}));
}

TEST_F(CriticalPathTest, ALaunchBoundThread) {
  Launch(100, 112, 115, "k");
  Launch(200, 212, 215, "k");
  Launch(300, 312, 315, "k");
  Synchronize(312, 320);
  EXPECT_EQ(Path(), (Lines{"CUDA call 10 100-110", "CPU 10 110-200", "CUDA call 10 200-210",
                           "CPU 10 210-300", "CUDA call 10 300-310", "launch latency 10 310-312",
                           "kernel 10 312-315", "end of GPU wait 10 315-320"}));
  // Without the CPU the kernels follow one another, the first one 2 ns after its launch.
  EXPECT_EQ(With("thread:app=0.5"), (Times{115, 16}));
  EXPECT_EQ(With("kernel:k=0"), (Times{217, 217}));
}

TEST_F(CriticalPathTest, KernelsOfAStreamFollowOneAnother) {
  Launch(100, 115, 315, "a");
  Launch(110, 317, 417, "b");
  Synchronize(120, 420);
  EXPECT_EQ(Path(), (Lines{"CUDA call 10 100-110", "launch latency 10 110-115", "kernel 10 115-315",
                           "between GPU work 10 315-317", "kernel 10 317-417",
                           "end of GPU wait 10 417-420"}));
  // The second kernel could begin 5 ns after its launch.
  EXPECT_EQ(With("kernel:a=0"), (Times{128, 128}));
  EXPECT_EQ(With("kernel:b=0.5"), (Times{270, 220}));
}

TEST_F(CriticalPathTest, TwoStreamsWithAnEvent) {
  Launch(100, 115, 615, "long", 1);
  Launch(120, 135, 235, "short", 2);
  StreamWait(140, 2);
  Launch(160, 616, 716, "joined", 2);
  Synchronize(180, 720, 2);
  EXPECT_EQ(Path(), (Lines{"CUDA call 10 100-110", "launch latency 10 110-115", "kernel 10 115-615",
                           "assumed stream wait 10 615-616", "kernel 10 616-716",
                           "end of GPU wait 10 716-720"}));
  EXPECT_EQ(With("kernel:short=0"), (Times{620, 620}));
  EXPECT_TRUE(matches_);  // though it is not on the path
  // Then the other stream's kernel is what the last one waits for: 235 + 100 + 4 - 100.
  EXPECT_EQ(With("kernel:long=0.1"), (Times{239, 239}));
}

TEST_F(CriticalPathTest, TwoThreadsWithALock) {
  // The worker holds the lock until 500 and is what the program waits for, from 200 on.
  Wait(kWorker, 50, 100, 110, kPid);
  Wait(kPid, 200, 500, 530, kWorker);
  Sample(10, kPid);
  Sample(10, kWorker);
  Sample(600, kPid);
  Sample(600, kWorker);
  EXPECT_EQ(Path(), (Lines{"CPU 10 10-100", "runnable 11 100-110", "CPU 11 110-500",
                           "runnable 10 500-530", "CPU 10 530-600"}));
  // Without the worker's work the lock is free before the program wants it.
  EXPECT_EQ(With("thread:worker=0.5"), (Times{395, 290}));
  // Then the worker comes to its own wait at 50.
  EXPECT_EQ(With("thread:app=0"), (Times{470, 470}));
}

TEST_F(CriticalPathTest, AWaitForNobodyThatIsKnownIsAssumed) {
  Wait(kPid, 200, 500, 500, 0);
  Wait(kPid, 550, 570, 570, 0).waker = OffCpuWaker::kInterrupt;
  Sample(100, kPid);
  Sample(600, kPid);
  EXPECT_EQ(Path(), (Lines{"CPU 10 100-200", "assumed wait 10 200-500", "CPU 10 500-550",
                           "wait 10 550-570", "CPU 10 570-600"}));
  EXPECT_EQ(Built().assumed_ns(), 300u);
}

TEST_F(CriticalPathTest, AThreadThatIsMetOnlyAtALockIsNotFollowed) {
  // The other one sleeps until 99,990, takes the lock and gives it back.
  Wait(kWorker, 1'000, 99'990, 99'990, 0).waker = OffCpuWaker::kInterrupt;
  Wait(kPid, 99'995, 100'000, 100'000, kWorker);
  Sample(500, kPid);
  Sample(500, kWorker);
  Sample(200'000, kPid);
  Sample(200'000, kWorker);
  EXPECT_EQ(Path(), (Lines{"CPU 10 500-99995", "wait 10 99995-100000", "CPU 10 100000-200000"}));
}

TEST_F(CriticalPathTest, SpinningAndSleepingInASynchronizationAreTheSame) {
  Launch(100, 115, 515, "slow");
  Synchronize(120, 520);
  Wait(kPid, 130, 510, 516, kWorker);  // the driver's thread, which another kernel waits for
  Wait(kPid, 600, 610, 610, 0).waker = OffCpuWaker::kInterrupt;
  EXPECT_EQ(Path(), (Lines{"CUDA call 10 100-110", "launch latency 10 110-115", "kernel 10 115-515",
                           "end of GPU wait 10 515-520", "CPU 10 520-600", "wait 10 600-610"}));
}

TEST_F(CriticalPathTest, WithoutOffCpuTimeAThreadIsAssumedToWaitForAnotherThatLaunches) {
  Launch(50'000, 50'020, 50'030, "backward", 7, kWorker);
  Launch(100'000, 100'020, 100'030, "forward");
  Launch(200'000, 200'020, 200'030, "backward", 7, kWorker);
  Launch(300'000, 300'020, 300'030, "backward", 7, kWorker);
  Launch(400'000, 400'020, 400'030, "update");
  Synchronize(400'020, 400'040);
  EXPECT_EQ(Path(), (Lines{"CUDA call 10 100000-100010", "assumed CPU 11 100010-200000",
                           "CUDA call 11 200000-200010", "CPU 11 200010-300000",
                           "CUDA call 11 300000-300010", "assumed CPU 10 300010-400000",
                           "CUDA call 10 400000-400010", "launch latency 10 400010-400020",
                           "kernel 10 400020-400030", "end of GPU wait 10 400030-400040"}));
}

TEST_F(CriticalPathTest, ATimeRangeIsAllThatCounts) {
  Launch(100, 115, 515, "slow");
  Synchronize(120, 520);
  Launch(600, 615, 815, "slow");
  Synchronize(620, 820);
  analysis_ = std::make_unique<Analysis>(builder_.Build());
  analysis_->shown.from_ns = 300;
  analysis_->shown.to_ns = 700;
  paths_ = std::make_unique<CallPaths>(*analysis_, PathOptions{});
  critical_ = std::make_unique<CriticalPath>(*analysis_, *paths_, StepOptions{});
  EXPECT_EQ(Path(), (Lines{"kernel 10 300-515", "end of GPU wait 10 515-520", "CPU 10 520-600",
                           "CUDA call 10 600-610", "CPU 10 610-620"}));
}

TEST_F(CriticalPathTest, ALaunchWaitsWhileTheQueueIsFull) {
  constexpr uint64_t kQueued = 600;
  for (uint64_t i = 0; i < kQueued; ++i) {
    Launch(100 + 20 * i, 115 + 1'000 * i, 1'115 + 1'000 * i, "k");
  }
  const uint32_t id = Call(test::kLaunchKernel, 20'000, 60'000);
  builder_.AddKernel(kGpu, id, 620'000, 621'000, "last").stream_id = 7;
  EXPECT_EQ(Path().back(), "assumed end of GPU wait 10 59115-60000");
  EXPECT_EQ(With("kernel:k=0.5"), (Times{30'400, 19'900}));
}

TEST_F(CriticalPathTest, AllStepsAfterTheWarmUp) {
  for (uint64_t i = 0; i < 10; ++i) {
    const uint64_t time_ns = 1'000 * (i + 1);
    Launch(time_ns, time_ns + 20, time_ns + 520, "k");
    Synchronize(time_ns + 30, time_ns + 530);
  }
  const CriticalWindow& window = Built().window();
  EXPECT_EQ(window.steps, 10u);
  EXPECT_EQ(window.StepNs(window.ns()), 901u);  // the last one ends with its launch
  uint64_t kernels_ns = 0;
  uint64_t whole_ns = 0;
  for (const CriticalSegment& segment : Built().segments()) {
    if (segment.edge.kind == EdgeKind::kKernel) kernels_ns += segment.ns();
    whole_ns += segment.ns();
  }
  EXPECT_EQ(kernels_ns, 4'500u);
  EXPECT_EQ(whole_ns, window.ns());
}

TEST_F(CriticalPathTest, APartOfTheRecordingHasThePathThatItHasInAll) {
  for (uint64_t i = 0; i < 12; ++i) {
    const uint64_t time_ns = 10'000 * (i + 1);
    Wait(kWorker, time_ns - 2'000, time_ns - 1'500, time_ns - 1'450, 0);
    Wait(kPid, time_ns - 900, time_ns - 500, time_ns - 450, kWorker);
    Launch(time_ns, time_ns + 20, time_ns + 2'020, "long", 1);
    Launch(time_ns + 30, time_ns + 50, time_ns + 550, "short", 2);
    StreamWait(time_ns + 60, 2);
    Launch(time_ns + 80, time_ns + 2'021, time_ns + 2'021 + 10 * i, "joined", 2);
    Synchronize(time_ns + 100, time_ns + 3'000, 2);
  }
  for (const uint32_t tid : {kPid, kWorker}) {
    Sample(5'000, tid);
    Sample(125'000, tid);
  }
  const std::vector<std::string> all = Path();
  const CriticalWindow window{.thread = Built().window().thread,
                              .from_ns = 50'000,
                              .to_ns = 80'000,
                              .steps = 3,
                              .first = 4};
  const auto path_of = [&](const RecordingPart& part) {
    critical_ = std::make_unique<CriticalPath>(*analysis_, *paths_, window, part);
    std::vector<std::string> lines = Path();
    lines.push_back(Format("{} {}", With("kernel:long=0.5").first, With("thread:app=0").first));
    return lines;
  };
  const std::vector<std::string> of_all = path_of({});
  EXPECT_GT(of_all.size(), 14u);
  EXPECT_LT(of_all.size(), all.size() / 2);
  const size_t edges = critical_->graph().graph().edges().size();
  EXPECT_EQ(path_of({40'000, 80'000}), of_all);
  EXPECT_LT(critical_->graph().graph().edges().size(), edges / 2);
}

TEST_F(CriticalPathTest, AdviceIsOfStepsInTheMiddleWhereThereAreVeryMany) {
  for (uint64_t i = 0; i < 100; ++i) {
    const uint64_t time_ns = 10'000 * (i + 1);
    Launch(time_ns, time_ns + 20, time_ns + 6'020, "k");
    Synchronize(time_ns + 30, time_ns + 6'030);
  }
  builder_.events.recording_info.emplace_back().start_ns = 0;
  builder_.End(1'010'000);
  analysis_ = std::make_unique<Analysis>(builder_.Build());
  const std::vector<StepSeries> steps = FindSteps(*analysis_, {});
  const auto hint_of = [&](auto... most_calls) {
    const std::optional<Hint> hint = FindCriticalHint(*analysis_, steps, {}, most_calls...);
    return hint ? hint->what + " " + hint->next : "";
  };
  const std::string rest =
      ". If the kernel k took no time, steps would be 60 % shorter. What else decides how long "
      "they take: --table what_if";
  EXPECT_EQ(hint_of(), "A step takes 9.9 us on average" + rest);
  EXPECT_EQ(hint_of(200), hint_of());
  EXPECT_EQ(hint_of(40),
            "In steps 39 to 59, a step takes 10 us on average" + rest + " --step-range 39-59");
  EXPECT_EQ(hint_of(1), "Step 49 takes 10 us" + rest + " --step-range 49-49");
}

TEST_F(CriticalPathTest, AProcessThatNoRecordNames) {
  test::ModelBuilder nameless;
  nameless.Clock(kGpu, 0, {0});
  nameless.Callback(kGpu, ApiDomain::kRuntime, test::kLaunchKernel, "cudaLaunchKernel");
  nameless.Call(kGpu, 1, test::kLaunchKernel, 100, 110, kPid);
  nameless.Launch(kGpu, 1, 100, kPid, kPid, nameless.Stack({0x1000}));
  nameless.AddKernel(kGpu, 1, 115, 200, "k");
  analysis_ = std::make_unique<Analysis>(nameless.Build());
  paths_ = std::make_unique<CallPaths>(*analysis_, PathOptions{});
  critical_ = std::make_unique<CriticalPath>(*analysis_, *paths_, StepOptions{});
  EXPECT_EQ(Path(), (Lines{"CUDA call 10 100-110"}));
}

TEST_F(CriticalPathTest, AnEmptyCaptureHasNoPath) {
  EXPECT_TRUE(Built().empty());
  EXPECT_EQ(With("kernel:.=0"), (Times{0, 0}));
}

TEST(SpeedupTest, WhatAndFactor) {
  const Speedup speedup = ParseSpeedup("function:a=b=0.25").value();
  EXPECT_EQ(SpeedupText(speedup), "function:a=b");
  EXPECT_EQ(speedup.factor, 0.25);
  for (const std::string_view wrong :
       {"", "kernel:", "kernel:a", "kernel:=1", "kernel:a=", "kernel:a=x", "kernel:a=-1",
        "kernel:a=nan", "kernel:a=1e9", "kernel:(=1", "loader:a=1"}) {
    EXPECT_FALSE(ParseSpeedup(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace xpu
