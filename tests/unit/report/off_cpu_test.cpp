#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "report/query/call_tree_builder.h"
#include "report/query/off_cpu_sums.h"
#include "report/query/off_cpu_waits.h"
#include "report/views/tables/top_tables.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

constexpr uint32_t kAppPid = 5;

class OffCpuTest : public testing::Test {
 protected:
  OffCpuTest() {
    builder_.events.recording_info.emplace_back().start_ns = 1'000;
    builder_.Process(ProcessEventKind::kExisting, 1'000, kAppPid, kAppPid, "app");
    builder_.Process(ProcessEventKind::kExisting, 1'000, kAppPid, 6, "worker");
  }

  // The stack was taken and is empty.
  OffCpuWait& Wait(uint32_t tid, uint64_t start_ns, uint64_t ready_ns, uint64_t end_ns,
                   OffCpuState state = OffCpuState::kBlocked) {
    OffCpuWait& wait = builder_.events.off_cpu_waits.emplace_back();
    wait.pid = kAppPid;
    wait.tid = tid;
    wait.start_ns = start_ns;
    wait.ready_ns = ready_ns;
    wait.end_ns = end_ns;
    wait.state = state;
    wait.system_call = -1;
    wait.stack_flags = kStackComplete;
    return wait;
  }
  OffCpuWait& LockWait(uint32_t tid, uint64_t start_ns, uint64_t end_ns, uint64_t address) {
    OffCpuWait& wait = Wait(tid, start_ns, end_ns, end_ns);
    wait.system_call = SYS_futex;
    wait.argument = address;
    return wait;
  }
  OffCpuWait& OpenLockWait(uint32_t tid, uint64_t address, uint32_t holder) {
    OffCpuWait& wait = LockWait(tid, 2'000, 3'000, address);
    wait.is_open = true;
    wait.lock_holder = holder;
    return wait;
  }
  void WokenBy(uint32_t tid, std::string_view name, OffCpuWait& wait) {
    wait.waker = OffCpuWaker::kThread;
    wait.waker_pid = kAppPid;
    wait.waker_tid = tid;
    wait.waker_name = builder_.Text(name);
  }
  void Sum(uint32_t tid, OffCpuState state, uint64_t count, uint64_t duration, uint64_t ready) {
    OffCpuSum& sum = builder_.events.off_cpu_sums.emplace_back();
    sum.time_ns = 9'000;
    sum.pid = kAppPid;
    sum.tid = tid;
    sum.state = state;
    sum.count = count;
    sum.duration = duration;
    sum.ready_duration = ready;
  }
  Analysis& Built() {
    if (!analysis_) analysis_ = std::make_unique<Analysis>(builder_.Build());
    return *analysis_;
  }
  std::string Csv(std::string table) {
    const ViewOptions options{
        .rows = 0, .format = TableFormat::kCsv, .table = std::move(table), .sort = {}};
    return test::Written([&](Output& output) { WriteTop(Built(), options, output); });
  }
  test::Lines Folded(TreeMode mode) {
    return test::Folded(Built(), {.tree = {.mode = mode}, .unit = TimeUnit::kNanoseconds});
  }

  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
};

TEST(OffCpuNames, CallKindOfFileAndState) {
  OffCpuWait wait;
  wait.state = OffCpuState::kBlocked;
  wait.system_call = SYS_read;
  EXPECT_EQ(WaitName(wait), "read");
  wait.file_type = S_IFIFO;
  EXPECT_EQ(WaitName(wait), "read pipe");
  wait.file_type = S_IFREG;
  wait.state = OffCpuState::kUninterruptible;
  EXPECT_EQ(WaitName(wait), "read file (uninterruptible)");
  wait.system_call = 9999;
  wait.file_type = 0;
  EXPECT_EQ(WaitName(wait), "system call 9999 (uninterruptible)");
  wait.system_call = SYS_clone3;
  wait.state = OffCpuState::kBlocked;
  EXPECT_EQ(WaitName(wait), "clone3");
  wait.system_call = -2;
  EXPECT_EQ(WaitName(wait), "page fault");
  wait.system_call = -1;
  wait.state = OffCpuState::kPreempted;
  EXPECT_EQ(WaitName(wait), "preempted");
}

TEST(OffCpuNames, DescriptorsWithoutFile) {
  OffCpuWait wait;
  wait.state = OffCpuState::kBlocked;
  wait.system_call = SYS_read;
  wait.file_type = 1;
  EXPECT_EQ(WaitName(wait), "read eventfd");
  wait.file_type = 2;
  EXPECT_EQ(WaitName(wait), "read timerfd");
  wait.file_type = 3;
  EXPECT_EQ(WaitName(wait), "read signalfd");
}

TEST(OffCpuNames, TheCallOfAStoppedThreadIsNotWhatItWaitsFor) {
  OffCpuWait wait;
  wait.state = OffCpuState::kStopped;
  wait.system_call = SYS_read;
  EXPECT_EQ(WaitName(wait), "stopped");
}

TEST_F(OffCpuTest, AWaitIsSplitAtItsWakeUp) {
  LockWait(kAppPid, 2'000, 2'500, 0x10).ready_ns = 2'400;
  Wait(kAppPid, 3'000, 3'000, 3'070, OffCpuState::kPreempted);
  Sum(kAppPid, OffCpuState::kBlocked, 3, 30, 4);
  Sum(kAppPid, OffCpuState::kRunning, 9, 5'000, 0);
  EXPECT_EQ(Folded(TreeMode::kOff), (test::Lines{{"app;[off-CPU] blocked, short", 30},
                                                 {"app;[off-CPU] futex", 400},
                                                 {"app;[off-CPU] preempted", 70},
                                                 {"app;[off-CPU] runnable", 100}}));
}

TEST_F(OffCpuTest, AWakeUpOutsideOfTheWaitIsNotKnown) {
  LockWait(kAppPid, 2'000, 2'500, 0x10).ready_ns = 0;
  LockWait(kAppPid, 3'000, 3'500, 0x10).ready_ns = 4'000;
  LockWait(kAppPid, 5'000, 4'000, 0x10).ready_ns = 4'500;  // ends before it begins
  EXPECT_EQ(Folded(TreeMode::kOff), (test::Lines{{"app;[off-CPU] futex", 1'000}}));
}

TEST_F(OffCpuTest, ATimeRangeCutsWaits) {
  LockWait(kAppPid, 2'000, 2'500, 0x10).ready_ns = 2'400;
  LockWait(kAppPid, 3'000, 3'500, 0x10);  // outside
  Sum(kAppPid, OffCpuState::kBlocked, 3, 30, 4);
  FilterOptions filter;
  filter.time = {.start_ns = 1'100, .end_ns = 1'450};  // since the start of the recording
  Analysis& analysis = Built();
  analysis.shown = SelectPart(filter, analysis).value();
  EXPECT_EQ(Folded(TreeMode::kOff),
            (test::Lines{{"app;[off-CPU] futex", 300}, {"app;[off-CPU] runnable", 50}}));
}

TEST_F(OffCpuTest, SamplesDivideTheRunningTime) {
  builder_.Source(1'000);
  builder_.Sample(2'500, kAppPid, kAppPid, builder_.Stack({0x10}));
  builder_.Sample(3'500, kAppPid, kAppPid, builder_.Stack({0x10}));
  builder_.Sample(4'500, kAppPid, kAppPid, builder_.Stack({0x20}));
  Sum(kAppPid, OffCpuState::kRunning, 9, 100, 0);
  Sum(6, OffCpuState::kRunning, 9, 7, 0);  // has no samples
  LockWait(kAppPid, 5'000, 5'040, 0x10);
  EXPECT_EQ(
      Folded(TreeMode::kWall),
      (test::Lines{{"app;[off-CPU] futex", 40}, {"app;[unknown]", 100}, {"worker;[running]", 7}}));
}

TEST_F(OffCpuTest, SpinningAndSleepingInASynchronizationIsWaitingForTheGpu) {
  builder_.Clock(1, 0, {1'000});
  builder_.Callback(1, ApiDomain::kRuntime, 131, "cudaStreamSynchronize_v3020");
  GpuProcess& process = builder_.events.gpu_processes.emplace_back();
  process.time_ns = 1'000;
  process.instance = {1};
  process.pid = kAppPid;
  builder_.Call(1, 1, 131, 2'000, 3'000, kAppPid);
  builder_.Source(1'000);
  builder_.Sample(2'500, kAppPid, kAppPid, {}).stack_flags = kStackComplete;
  builder_.Sample(3'500, kAppPid, kAppPid, {}).stack_flags = kStackComplete;
  Sum(kAppPid, OffCpuState::kRunning, 9, 200, 0);
  LockWait(kAppPid, 2'600, 2'640, 0x10);
  LockWait(kAppPid, 3'600, 3'601, 0x10);
  EXPECT_EQ(Folded(TreeMode::kWall), (test::Lines{{"app;[GPU wait]", 40},
                                                  {"app;[off-CPU] futex", 1},
                                                  {"app;[unknown]", 100},
                                                  {"app;[unknown];[GPU wait]", 100}}));
  EXPECT_EQ(Folded(TreeMode::kOff),
            (test::Lines{{"app;[GPU wait]", 40}, {"app;[off-CPU] futex", 1}}));
  EXPECT_NE(Csv("off_cpu_sum").find(",GPU (futex),app\n"), std::string::npos);
}

TEST_F(OffCpuTest, WallTimeWithoutOffCpuTimeSaysSo) {
  builder_.Source(1'000);
  builder_.Sample(2'500, kAppPid, kAppPid, {});
  EXPECT_EQ(LeftOutText(Built(), {.mode = TreeMode::kWall}),
            "the capture has no off-CPU time: only CPU samples are shown\n"
            "  hint: xpu-record --off-cpu records it\n");
}

TEST_F(OffCpuTest, TraceHasStatesAndAnArrowFromTheWaker) {
  OffCpuWait& wait = LockWait(kAppPid, 2'000, 2'500, 0x10);
  wait.ready_ns = 2'400;
  WokenBy(6, "worker", wait);
  Wait(kAppPid, 3'000, 3'000, 3'200, OffCpuState::kPreempted);
  Sum(kAppPid, OffCpuState::kRunning, 2, 7'300, 0);  // so its first state begins at 1,000
  Sum(6, OffCpuState::kRunning, 1, 8'000, 0);
  std::string notes;
  const std::string trace =
      test::Written([&](Output& output) { WriteChromeTrace(Built(), {}, output, notes); });
  std::vector<std::string> slices, arrows;
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    const auto has = [&](std::string_view part) { return line.find(part) != std::string::npos; };
    if (has("\"cat\":\"state\"")) slices.push_back(line);
    if (has("\"ph\":\"s\"") || has("\"ph\":\"f\"")) arrows.push_back(line);
  }
  std::string text;
  for (const std::string& line : slices) text += line + "\n";
  for (const std::string& line : arrows) text += line + "\n";
  EXPECT_EQ(
      text,
      "{\"ph\":\"X\",\"pid\":5,\"tid\":4194305,\"name\":\"running\",\"cat\":\"state\",\"ts\":0.000,"
      "\"dur\":0.999},\n"
      "{\"ph\":\"X\",\"pid\":5,\"tid\":4194306,\"name\":\"running\",\"cat\":\"state\",\"ts\":0.000,"
      "\"dur\":7.999},\n"
      "{\"ph\":\"X\",\"pid\":5,\"tid\":4194305,\"name\":\"futex\",\"cat\":\"state\",\"ts\":1.000,"
      "\"dur\":0.399,\"args\":{\"argument\":\"0x10\",\"woken by\":\"worker/6\"}},\n"
      "{\"ph\":\"X\",\"pid\":5,\"tid\":4194305,\"name\":\"runnable\",\"cat\":\"state\",\"ts\":1."
      "400,"
      "\"dur\":0.099},\n"
      "{\"ph\":\"X\",\"pid\":5,\"tid\":4194305,\"name\":\"running\",\"cat\":\"state\",\"ts\":1.500,"
      "\"dur\":0.499},\n"
      "{\"ph\":\"X\",\"pid\":5,\"tid\":4194305,\"name\":\"preempted\",\"cat\":\"state\","
      "\"ts\":2.000,\"dur\":0.199},\n"
      "{\"ph\":\"X\",\"pid\":5,\"tid\":4194305,\"name\":\"running\",\"cat\":\"state\",\"ts\":2.200,"
      "\"dur\":5.799}\n"
      "{\"ph\":\"s\",\"pid\":5,\"tid\":4194306,\"name\":\"wakeup\",\"cat\":\"wakeup\",\"id\":1,"
      "\"ts\":1.400},\n"
      "{\"ph\":\"f\",\"pid\":5,\"tid\":4194305,\"name\":\"wakeup\",\"cat\":\"wakeup\",\"bp\":\"e\","
      "\"id\":1,\"ts\":1.400},\n");
}

TEST_F(OffCpuTest, StatesOfAThreadAddUp) {
  LockWait(kAppPid, 2'000, 2'500, 0x10).ready_ns = 2'400;
  Wait(kAppPid, 3'000, 3'000, 3'070, OffCpuState::kPreempted);
  Sum(kAppPid, OffCpuState::kBlocked, 3, 30, 4);
  Sum(kAppPid, OffCpuState::kPreempted, 2, 5, 5);
  Sum(kAppPid, OffCpuState::kRunning, 9, 5'000, 0);
  const std::vector<ThreadStates> threads = FindThreadStates(Built());
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].owner.tid, kAppPid);
  EXPECT_EQ(threads[0].running_ns, 5'000u);
  EXPECT_EQ(threads[0].waiting_ns, 426u);
  EXPECT_EQ(threads[0].runnable_ns, 179u);
}

TEST_F(OffCpuTest, ThreadsThatCouldRunComeFirst) {
  Wait(kAppPid, 1'000, 9'000, 9'000).system_call = SYS_read;
  Wait(6, 1'000, 1'500, 1'600).system_call = SYS_read;
  const std::vector<ThreadStates> threads = FindThreadStates(Built());
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_EQ(threads[0].owner.tid, 6u);
}

TEST_F(OffCpuTest, TheSummaryLeavesOutKernelThreads) {
  Wait(kAppPid, 1'000, 3'000, 3'000).system_call = SYS_read;
  Wait(6, 1'000, 6'000, 6'000);  // without frames
  Wait(6, 6'000, 9'000, 9'000).stack = builder_.Stack({0xffffffff81000000});
  // Those of a program are outside system calls too.
  Wait(6, 9'000, 9'500, 9'500).stack = builder_.Stack({0x10});
  Wait(6, 9'500, 9'600, 9'600, OffCpuState::kStopped);
  const std::string text =
      test::Written([&](Output& output) { WriteSummary(Built(), {}, output); });
  EXPECT_NE(text.find("Waits: 2.6 us, without those of kernel threads\n"), std::string::npos)
      << text;
}

TEST_F(OffCpuTest, ReasonsWithWhatIsKnownOfSums) {
  LockWait(kAppPid, 2'000, 2'500, 0x10).ready_ns = 2'400;
  LockWait(kAppPid, 3'000, 3'100, 0x20);
  Sum(6, OffCpuState::kBlocked, 4, 200, 50);
  Sum(6, OffCpuState::kRunning, 9, 5'000, 0);
  EXPECT_EQ(Csv("off_cpu_sum"),
            "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),"
            "Runnable (ns),Reason,Path\n"
            "75.0,600,2,300.0,300.0,100,500,282.8,100,futex,app\n"
            "25.0,200,4,50.0,,,,,50,\"blocked, short\",worker\n");
}

TEST_F(OffCpuTest, WakeUpsByWakerAndWoken) {
  OffCpuWait& first = LockWait(kAppPid, 2'000, 2'500, 0x10);
  first.ready_ns = 2'400;
  WokenBy(6, "worker", first);
  WokenBy(6, "worker", LockWait(kAppPid, 3'000, 3'100, 0x20));
  Wait(6, 4'000, 4'200, 4'200).waker = OffCpuWaker::kInterrupt;
  Wait(6, 5'000, 5'200, 5'200);  // by nobody that is known
  EXPECT_EQ(Csv("wakeup_sum"),
            "Time (%),Total Time (ns),Wake-ups,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),"
            "Waker,Woken,Reason,Path\n"
            "71.4,500,2,250.0,250.0,100,400,212.1,worker,app,futex,worker\n"
            "28.6,200,1,200.0,200.0,200,200,0.0,[interrupt],worker,blocked,\n");
}

TEST_F(OffCpuTest, LocksByAddress) {
  WokenBy(6, "worker", LockWait(kAppPid, 2'000, 2'500, 0x10));
  WokenBy(6, "worker", LockWait(kAppPid, 3'000, 3'100, 0x10));
  LockWait(6, 3'000, 3'050, 0x10).waker = OffCpuWaker::kInterrupt;
  OpenLockWait(6, 0x20, kAppPid);
  Wait(6, 5'000, 5'200, 5'200);  // for no lock
  EXPECT_EQ(Csv("lock_sum"),
            "Time (%),Total Time (ns),Waits,Avg (ns),Max (ns),Threads,Not Ended,Pid,Lock,"
            "Released By,Held By,Path\n"
            "60.6,1000,1,1000.0,1000,1,1,5,0x20,,app/5,worker\n"
            "39.4,650,3,216.7,500,2,0,5,0x10,\"worker/6 x2, [interrupt]\",,app\n");
}

TEST_F(OffCpuTest, ADeadlockIsACircleOfHolders) {
  OpenLockWait(6, 0x10, 7);
  OpenLockWait(7, 0x20, 8);
  OpenLockWait(8, 0x30, 7);    // 7 and 8 wait for each other
  OpenLockWait(9, 0x40, 6);    // leads to them
  OpenLockWait(10, 0x50, 0);   // nobody is known to hold it
  OpenLockWait(11, 0x60, 11);  // by itself
  const std::vector<Deadlock> found = FindDeadlocks(Built());
  ASSERT_EQ(found.size(), 2u);
  ASSERT_EQ(found[0].size(), 2u);
  EXPECT_EQ(found[0][0]->tid, 7u);
  EXPECT_EQ(found[0][1]->tid, 8u);
  ASSERT_EQ(found[1].size(), 1u);
  EXPECT_EQ(found[1][0]->tid, 11u);
}

TEST_F(OffCpuTest, SummaryShowsStatesReasonsAndDeadlocks) {
  OpenLockWait(kAppPid, 0x10, 6);
  OpenLockWait(6, 0x20, kAppPid);
  Sum(kAppPid, OffCpuState::kRunning, 1, 3'000, 0);
  const std::string text =
      test::Written([&](Output& output) { WriteSummary(Built(), {}, output); });
  EXPECT_NE(
      text.find("deadlock  app/5 waits for 0x10, which worker/6 holds, worker/6 waits for 0x20,\n"
                "          which app/5 holds\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("Threads: how they spent their time\n"
                      "  running%  waiting%  runnable%       time  thread\n"
                      "      75.0      25.0        0.0       4 us  app/5\n"
                      "       0.0     100.0        0.0       1 us  worker/6\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Waits: 2 us\n"
                      "  time%     total     count   longest  reason\n"
                      "  100.0      2 us         2      1 us  futex\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace xpu
