#include "record/process/process_table.h"

#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/base/text.h"

namespace xpu {
namespace {

using Lines = std::vector<std::string>;

// A child that has not been waited for: its number is in use until it is.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ == 0) ::_exit(0);
  }
  ~Child() { Reap(); }
  void Reap() {
    if (!reaped_) ::waitpid(pid_, nullptr, 0);
    reaped_ = true;
  }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }

 private:
  pid_t pid_;
  bool reaped_ = false;
};

class Log : public ProcessListener {
 public:
  explicit Log(ProcessTable& table) : table_(table) { table.AddListener(this); }
  void OnFork(uint32_t parent_pid, uint32_t pid) override {
    lines.push_back(Format("{} forks {}", parent_pid, pid));
  }
  void OnExec(uint32_t pid) override { lines.push_back(Format("{} execs", pid)); }
  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override {
    lines.push_back(Format("{} maps {} at {:x}{}", pid, table_.file(mapping.file).path, start,
                           table_.IsCurrent(pid, mapping) ? "" : ", too late"));
  }
  void OnEnd(uint32_t pid) override {
    lines.push_back(Format("{} ({}) ends", pid, table_.Find(pid)->name(pid)));
  }
  Lines Take() { return std::exchange(lines, {}); }

  Lines lines;

 private:
  const ProcessTable& table_;
};

class ProcessTableTest : public testing::Test {
 protected:
  static constexpr uint64_t kLongAfter = 10'000'000'000;

  void Event(ProcessEventKind kind, uint64_t time_ns, uint32_t pid, uint32_t tid,
             uint32_t parent_pid = 0, uint32_t parent_tid = 0, std::string_view name = {}) {
    ProcessEvent event;
    event.kind = kind;
    event.time_ns = time_ns;
    event.pid = pid;
    event.tid = tid;
    event.parent_pid = parent_pid;
    event.parent_tid = parent_tid;
    table_.Observe(event, name);
  }
  void Fork(uint64_t time_ns, uint32_t parent, uint32_t child) {
    Event(ProcessEventKind::kFork, time_ns, child, child, parent, parent);
  }
  void Exec(uint64_t time_ns, uint32_t pid, std::string_view name = "app") {
    Event(ProcessEventKind::kExec, time_ns, pid, pid, 0, 0, name);
  }
  void Exit(uint64_t time_ns, uint32_t pid) { Event(ProcessEventKind::kExit, time_ns, pid, pid); }
  void Map(uint64_t time_ns, uint32_t pid, uint64_t start, uint64_t size, uint64_t offset = 0,
           std::string_view path = "/a", std::string_view build_id = {}) {
    Mapping mapping;
    mapping.time_ns = time_ns;
    mapping.pid = mapping.tid = pid;
    mapping.start_address = start;
    mapping.size_bytes = size;
    mapping.file_offset = offset;
    table_.Observe(mapping, path, build_id);
  }

  // What a process has mapped: "[1000, 5000) +0 of /a".
  Lines Code(uint32_t pid) {
    table_.ApplyNotes();
    Lines lines;
    const ProcessTable::Process* process = table_.Find(pid);
    if (process == nullptr || !process->code) return lines;
    for (const auto& [start, mapping] : process->code->mappings()) {
      lines.push_back(Format("[{:x}, {:x}) +{:x} of {}", start, mapping.end, mapping.file_offset,
                             table_.file(mapping.file).path));
    }
    return lines;
  }
  Lines Live() {
    Lines lines;
    table_.ForEach(
        [&lines](const ProcessEvent& event, std::string_view name) {
          EXPECT_EQ(event.kind, ProcessEventKind::kExisting);
          lines.push_back(Format("{}: {}/{} of {}/{} {}", event.time_ns, event.pid, event.tid,
                                 event.parent_pid, event.parent_tid, name));
        },
        [&lines](const Mapping& mapping, std::string_view path, std::string_view build_id) {
          lines.push_back(Format("{}: {} {:x}+{:x}@{:x} {} {}", mapping.time_ns, mapping.pid,
                                 mapping.start_address, mapping.size_bytes, mapping.file_offset,
                                 path, build_id));
        });
    return lines;
  }
  size_t PastCount(uint32_t pid) {
    table_.ApplyNotes();
    size_t count = 0;
    table_.ForEachPastMapping(*table_.Find(pid), [&](const PastMapping&) { ++count; });
    return count;
  }

  ProcessTable table_;
};

// ---- address spaces -----------------------------------------------------------------------------

TEST_F(ProcessTableTest, ANewMappingReplacesWhatItCovers) {
  Map(1, 7, 0x1000, 0x4000, 0, "/a");
  Map(2, 7, 0x9000, 0x1000, 0x7000, "/b");
  Map(3, 7, 0x1000, 0x4000, 0, "/c");
  EXPECT_EQ(Code(7), (Lines{"[1000, 5000) +0 of /c", "[9000, a000) +7000 of /b"}));
  Map(4, 7, 0, 0x10000, 0, "/d");
  EXPECT_EQ(Code(7), (Lines{"[0, 10000) +0 of /d"}));
}

TEST_F(ProcessTableTest, TheRestOfAMappingKeepsItsFileOffset) {
  Map(1, 7, 0x1000, 0x8000, 0x200, "/a");
  Map(2, 7, 0x3000, 0x1000, 0, "/b");  // a hole in the middle
  EXPECT_EQ(Code(7), (Lines{"[1000, 3000) +200 of /a", "[3000, 4000) +0 of /b",
                            "[4000, 9000) +3200 of /a"}));
  Map(3, 7, 0x3800, 0x1800, 0, "/c");  // over an end and a beginning
  EXPECT_EQ(Code(7), (Lines{"[1000, 3000) +200 of /a", "[3000, 3800) +0 of /b",
                            "[3800, 5000) +0 of /c", "[5000, 9000) +4200 of /a"}));
  EXPECT_EQ(table_.FindCode(7, 0x4fff)->first, 0x3800u);
  EXPECT_EQ(table_.FindCode(7, 0x9000), nullptr);
  EXPECT_EQ(table_.FindCode(7, 0xfff), nullptr);
  EXPECT_EQ(table_.FindCode(8, 0x4fff), nullptr);
}

TEST_F(ProcessTableTest, MappingsBeyondTheLimitAreRefused) {
  for (uint64_t i = 0; i <= AddressSpace::kMaxMappings; ++i) Map(i, 7, 0x2000 * i, 0x1000);
  table_.ApplyNotes();
  EXPECT_EQ(table_.TakeMappingsRefused(), 1u);
  Map(100000, 7, 0, 0x1000, 0, "/b");
  table_.ApplyNotes();
  EXPECT_EQ(table_.TakeMappingsRefused(), 0u) << "replaces one";
  EXPECT_EQ(table_.file(table_.FindCode(7, 0)->second.file).path, "/b");
}

TEST_F(ProcessTableTest, ProcessesShareCodeUntilOneMapsMore) {
  Map(1, 7, 0x1000, 0x1000);
  Fork(2, 7, 8);
  Fork(3, 8, 9);
  EXPECT_EQ(Code(9), Code(7));
  EXPECT_EQ(table_.Find(9)->code.get(), table_.Find(7)->code.get());
  Map(4, 8, 0x3000, 0x1000, 0, "/b");
  EXPECT_EQ(Code(8), (Lines{"[1000, 2000) +0 of /a", "[3000, 4000) +0 of /b"}));
  EXPECT_EQ(Code(7), (Lines{"[1000, 2000) +0 of /a"}));
  EXPECT_EQ(table_.Find(9)->code.get(), table_.Find(7)->code.get());
}

TEST_F(ProcessTableTest, FilesAreIdentifiedByBuildIdOrInode) {
  Map(1, 7, 0x1000, 0x1000, 0, "/a", "1");
  Map(2, 8, 0x8000, 0x1000, 0, "/a", "1");
  Map(3, 7, 0x3000, 0x1000, 0, "/a", "2");
  table_.ApplyNotes();
  EXPECT_EQ(table_.FindCode(7, 0x1000)->second.file, table_.FindCode(8, 0x8000)->second.file);
  EXPECT_NE(table_.FindCode(7, 0x1000)->second.file, table_.FindCode(7, 0x3000)->second.file);
}

// ---- what happens when --------------------------------------------------------------------------

TEST_F(ProcessTableTest, NotesAreAppliedInTheOrderOfTime) {
  Log log(table_);
  Map(4, 8, 0x1000, 0x1000, 0, "/b");  // of one CPU
  Exec(3, 8);
  Fork(2, 7, 8);  // of another one
  Map(1, 7, 0x1000, 0x1000, 0, "/a");
  table_.EndRound(5);
  EXPECT_EQ(log.Take(), (Lines{"7 maps /a at 1000", "7 forks 8", "8 execs", "8 maps /b at 1000"}));
  EXPECT_EQ(Code(8), (Lines{"[1000, 2000) +0 of /b"}));
}

TEST_F(ProcessTableTest, CodeFoundInAProcessIsMarkedAsAmended) {
  Mapping mapping;
  mapping.pid = 7;
  mapping.start_address = 0x1000;
  mapping.size_bytes = 0x1000;
  table_.Amend(mapping, "/a", {});
  EXPECT_EQ(Code(7), (Lines{"[1000, 2000) +0 of /a"}));
  EXPECT_TRUE(table_.FindCode(7, 0x1000)->second.is_amended);
  Map(2, 7, 0x1000, 0x1000);  // the kernel's record
  EXPECT_EQ(Code(7), (Lines{"[1000, 2000) +0 of /a"}));
  EXPECT_FALSE(table_.FindCode(7, 0x1000)->second.is_amended);
}

TEST_F(ProcessTableTest, AMappingFromBeforeTheExecIsPast) {
  Log log(table_);
  Exec(5, 7);
  table_.EndRound(5);
  Map(4, 7, 0x1000, 0x1000);
  table_.EndRound(6);
  EXPECT_EQ(log.Take(), (Lines{"7 execs", "7 maps /a at 1000, too late"}));
  EXPECT_EQ(Code(7), Lines{});
  EXPECT_EQ(PastCount(7), 1u);
}

TEST_F(ProcessTableTest, AProcessEndsAWhileAfterItsFirstThread) {
  Log log(table_);
  Child child;
  Fork(1, 7, child.pid());
  Exec(2, child.pid(), "app");
  table_.EndRound(100);
  log.Take();
  Exit(3, child.pid());
  table_.EndRound(200);
  EXPECT_EQ(log.Take(), Lines{}) << "its samples are still to come";
  EXPECT_EQ(table_.Find(child.pid())->exit_ns, 3u);
  table_.EndRound(200 + kLongAfter);
  EXPECT_EQ(log.Take(), Lines{}) << "others of its threads run";
  child.Reap();
  table_.EndRound(200 + 2 * kLongAfter);
  EXPECT_EQ(log.Take(), (Lines{Format("{} (app) ends", child.pid())}));
  EXPECT_EQ(table_.Find(child.pid()), nullptr);
}

TEST_F(ProcessTableTest, AProcessGoesOnWithoutItsFirstThread) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([] { ::pause(); }).detach();
    ::syscall(SYS_exit, 0);  // of this thread alone
  }
  const auto pid = static_cast<uint32_t>(child);
  for (int i = 0; i < 10000 && LivingThread(pid) == pid; ++i) ::usleep(1000);
  const uint32_t thread = LivingThread(pid);
  Fork(1, 7, pid);
  Event(ProcessEventKind::kFork, 2, pid, thread, pid, pid);
  Map(2, pid, 0x1000, 0x1000, 0, "/a");
  Exit(3, pid);
  table_.EndRound(4);
  EXPECT_EQ(table_.Find(pid)->exit_ns, 0u);
  EXPECT_EQ(Live().size(), 3u) << "two threads and a mapping";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  Event(ProcessEventKind::kExit, 5, pid, thread);
  table_.EndRound(6);
  EXPECT_EQ(table_.Find(pid)->exit_ns, 5u);
  EXPECT_EQ(Live(), Lines{});
}

TEST_F(ProcessTableTest, AReusedPidIsAnotherProcess) {
  Log log(table_);
  Fork(1, 7, 8);
  Map(2, 8, 0x1000, 0x1000, 0, "/old");
  Exit(3, 8);
  Fork(4, 9, 8);
  Exit(3, 8);  // of the first one, reported late
  table_.EndRound(5);
  EXPECT_EQ(log.Take(), (Lines{"7 forks 8", "8 maps /old at 1000", "8 () ends", "9 forks 8"}));
  EXPECT_EQ(table_.Find(8)->exit_ns, 0u);
  EXPECT_EQ(Code(8), Lines{});
}

TEST_F(ProcessTableTest, AForkThatIsReportedLateKeepsWhatTheChildDid) {
  Map(1, 7, 0x1000, 0x1000, 0, "/a");
  Map(5, 8, 0x3000, 0x1000, 0, "/b");
  Exec(6, 9);
  Map(7, 9, 0x3000, 0x1000, 0, "/c");
  table_.EndRound(10);
  Log log(table_);
  Fork(3, 7, 8);
  Fork(4, 7, 9);
  table_.EndRound(20);
  EXPECT_EQ(Code(8), (Lines{"[1000, 2000) +0 of /a", "[3000, 4000) +0 of /b"}));
  EXPECT_EQ(Code(9), (Lines{"[3000, 4000) +0 of /c"})) << "it called exec since";
  EXPECT_EQ(PastCount(9), 2u);
  EXPECT_EQ(table_.Find(9)->name(9), "app");
  EXPECT_EQ(log.Take(), (Lines{"7 forks 8"}));
}

// ---- the past -----------------------------------------------------------------------------------

TEST_F(ProcessTableTest, PastMappingsSurviveExecAndFork) {
  Map(1, 7, 0x1000, 0x1000, 0, "/a");
  Fork(2, 7, 8);
  Exec(3, 8);
  Map(4, 8, 0x1000, 0x1000, 0, "/b");
  Map(5, 7, 0x5000, 0x1000, 0, "/c");
  EXPECT_EQ(PastCount(7), 2u);  // a, c
  EXPECT_EQ(PastCount(8), 2u);  // a, b
}

TEST_F(ProcessTableTest, AnonymousMemoryIsNotAPastMapping) {
  Map(1, 7, 0x1000, 0x1000, 0, "//anon");
  Map(2, 7, 0x3000, 0x1000, 0, "[vdso]");
  EXPECT_EQ(PastCount(7), 1u);
}

TEST_F(ProcessTableTest, ManyForksKeepTheChainOfPastMappingsShort) {
  for (uint32_t i = 0; i < 1000; ++i) {
    Map(2 * i, 7, 0x1000 * (i + 1), 0x1000);
    Fork(2 * i + 1, 7, 100 + i);
  }
  EXPECT_EQ(PastCount(7), 1000u);
  EXPECT_EQ(PastCount(100), 1u);
  EXPECT_EQ(PastCount(1099), 1000u);
}

TEST_F(ProcessTableTest, CodeMappedRepeatedlyLeavesSpaceForOther) {
  for (int i = 0; i < 200000; ++i) Map(1, 7, 0x1000, 0x1000);
  EXPECT_LT(PastCount(7), 2000u);
  EXPECT_EQ(table_.TakePastMappingsDropped(), 0u);
}

TEST_F(ProcessTableTest, PastMappingsWithoutRoomAreCounted) {
  constexpr uint64_t kRoom = ProcessTable::kMaxPastMappingsOfProcess;
  for (uint64_t i = 0; i < kRoom + 10; ++i) Map(1, 7, 0x1000 * i, 0x1000);
  table_.ApplyNotes();
  EXPECT_EQ(table_.TakePastMappingsDropped(), 10u);
  EXPECT_EQ(table_.TakePastMappingsDropped(), 0u);
}

TEST_F(ProcessTableTest, WithoutSymbolsNoPastIsKept) {
  ProcessTable table(false);
  Mapping mapping;
  mapping.pid = 7;
  mapping.size_bytes = 0x1000;
  table.Observe(mapping, "/a", "");
  table.EndRound(1);
  EXPECT_EQ(table.Find(7)->past, nullptr);
}

// ---- who is alive -------------------------------------------------------------------------------

TEST_F(ProcessTableTest, ThreadsComeAndGo) {
  Event(ProcessEventKind::kExisting, 1, 10, 10, 1, 1, "bash");
  Event(ProcessEventKind::kFork, 2, 10, 11, 10, 10);
  Event(ProcessEventKind::kName, 3, 10, 11, 0, 0, "worker");
  EXPECT_EQ(Live(), (Lines{"1: 10/10 of 1/1 bash", "3: 10/11 of 10/10 worker"}));
  Event(ProcessEventKind::kExit, 4, 10, 11);
  EXPECT_EQ(Live(), (Lines{"1: 10/10 of 1/1 bash"}));
  Exit(5, 10);
  EXPECT_EQ(Live(), Lines{});
}

TEST_F(ProcessTableTest, ForkCopiesAndExecForgets) {
  Event(ProcessEventKind::kExisting, 1, 10, 10, 1, 1, "sh");
  Map(2, 10, 0x1000, 0x1000, 0, "/bin/sh", "id");
  Fork(3, 10, 20);
  Event(ProcessEventKind::kFork, 4, 20, 21, 20, 20);
  EXPECT_EQ(Live(),
            (Lines{"1: 10/10 of 1/1 sh", "2: 10 1000+1000@0 /bin/sh id", "3: 20/20 of 10/10 sh",
                   "4: 20/21 of 20/20 sh", "3: 20 1000+1000@0 /bin/sh id"}));
  Exit(5, 20);  // the kernel ends the first thread when another one calls exec
  Event(ProcessEventKind::kExec, 5, 20, 21, 0, 0, "app");
  Map(6, 20, 0x4000, 0x1000, 0, "/bin/app", "id2");
  EXPECT_EQ(Live(), (Lines{"1: 10/10 of 1/1 sh", "2: 10 1000+1000@0 /bin/sh id",
                           "5: 20/20 of 10/10 app", "6: 20 4000+1000@0 /bin/app id2"}));
}

TEST_F(ProcessTableTest, ThreadsAreBounded) {
  for (uint32_t i = 1; i <= ProcessTable::kMaxThreads + 10; ++i) {
    Event(ProcessEventKind::kFork, i, i, i, 1, 1);
  }
  EXPECT_EQ(Live().size(), ProcessTable::kMaxThreads);
  Exit(1000000, 5);
  Event(ProcessEventKind::kFork, 1000001, 99'999'999, 99'999'999, 1, 1);
  EXPECT_EQ(Live().size(), ProcessTable::kMaxThreads);
}

}  // namespace
}  // namespace xpu
