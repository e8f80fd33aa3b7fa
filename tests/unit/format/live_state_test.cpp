#include "format/live_state.h"

#include <gtest/gtest.h>

#include "format/base/text.h"

namespace xpu::test {
namespace {

ProcessEvent Event(ProcessEventKind kind, uint64_t time_ns, uint32_t pid, uint32_t tid,
                   uint32_t parent_pid = 0, uint32_t parent_tid = 0) {
  ProcessEvent event;
  event.kind = kind;
  event.time_ns = time_ns;
  event.pid = pid;
  event.tid = tid;
  event.parent_pid = parent_pid;
  event.parent_tid = parent_tid;
  return event;
}

Mapping Map(uint64_t time_ns, uint32_t pid, uint64_t start, uint64_t size, uint64_t offset = 0) {
  Mapping mapping;
  mapping.time_ns = time_ns;
  mapping.pid = mapping.tid = pid;
  mapping.start_address = start;
  mapping.size_bytes = size;
  mapping.file_offset = offset;
  return mapping;
}

std::vector<std::string> Restated(const LiveState& state) {
  std::vector<std::string> lines;
  state.Restate(
      [&lines](const ProcessEvent& event, const std::string& name) {
        EXPECT_EQ(event.kind, ProcessEventKind::kExisting);
        lines.push_back(Format("{}: {}/{} of {}/{} {}", event.time_ns, event.pid, event.tid,
                               event.parent_pid, event.parent_tid, name));
      },
      [&lines](const Mapping& mapping, const std::string& path, const std::string& build_id) {
        lines.push_back(Format("{}: {} {:x}+{:x}@{:x} {} {}", mapping.time_ns, mapping.pid,
                               mapping.start_address, mapping.size_bytes, mapping.file_offset, path,
                               build_id));
      });
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LiveState, ThreadsComeAndGo) {
  LiveState state;
  state.Note(Event(ProcessEventKind::kExisting, 1, 10, 10, 1, 1), "bash");
  state.Note(Event(ProcessEventKind::kFork, 2, 10, 11, 10, 10), "");
  state.Note(Event(ProcessEventKind::kName, 3, 10, 11), "worker");
  EXPECT_EQ(Restated(state), (Lines{"1: 10/10 of 1/1 bash", "3: 10/11 of 10/10 worker"}));
  state.Note(Event(ProcessEventKind::kExit, 4, 10, 11), "");
  EXPECT_EQ(Restated(state), (Lines{"1: 10/10 of 1/1 bash"}));
  state.Note(Event(ProcessEventKind::kExit, 5, 10, 10), "");
  EXPECT_EQ(Restated(state), Lines{});
}

TEST(LiveState, ForkCopiesAndExecForgets) {
  LiveState state;
  state.Note(Event(ProcessEventKind::kExisting, 1, 10, 10, 1, 1), "sh");
  state.Note(Map(2, 10, 0x1000, 0x1000), "/bin/sh", "id");
  state.Note(Event(ProcessEventKind::kFork, 3, 20, 20, 10, 10), "");
  state.Note(Event(ProcessEventKind::kFork, 4, 20, 21, 20, 20), "");
  EXPECT_EQ(Restated(state),
            (Lines{"1: 10/10 of 1/1 sh", "2: 10 1000+1000@0 /bin/sh id", "3: 20/20 of 10/10 sh",
                   "4: 20/21 of 20/20 sh", "3: 20 1000+1000@0 /bin/sh id"}));
  state.Note(Event(ProcessEventKind::kExec, 5, 20, 21), "app");
  state.Note(Map(6, 20, 0x4000, 0x1000), "/bin/app", "id2");
  EXPECT_EQ(Restated(state), (Lines{"1: 10/10 of 1/1 sh", "2: 10 1000+1000@0 /bin/sh id",
                                    "5: 20/20 of 10/10 app", "6: 20 4000+1000@0 /bin/app id2"}));
}

TEST(LiveState, NewMappingsReplaceOlderOnes) {
  LiveState state;
  state.Note(Map(1, 1, 0x1000, 0x1000), "covered", "");
  state.Note(Map(2, 1, 0x2000, 0x3000, 0x100), "begins inside", "");
  state.Note(Map(3, 1, 0x8000, 0x1000), "elsewhere", "");
  state.Note(Map(4, 2, 0x1000, 0x1000), "of another process", "");
  state.Note(Map(5, 1, 0x1000, 0x2000), "new", "");
  EXPECT_EQ(Restated(state),
            (Lines{"5: 1 1000+2000@0 new ", "2: 1 3000+2000@1100 begins inside ",
                   "3: 1 8000+1000@0 elsewhere ", "4: 2 1000+1000@0 of another process "}));
}

TEST(LiveState, IsBounded) {
  LiveState state;
  for (uint32_t i = 1; i <= LiveState::kMaxThreads + 10; ++i) {
    state.Note(Event(ProcessEventKind::kFork, i, i, i, 1, 1), "");
  }
  EXPECT_EQ(Restated(state).size(), LiveState::kMaxThreads);
  state.Note(Event(ProcessEventKind::kExit, 1, 5, 5), "");
  state.Note(Event(ProcessEventKind::kFork, 1, 99'999'999, 99'999'999, 1, 1), "");
  EXPECT_EQ(Restated(state).size(), LiveState::kMaxThreads);
  for (uint32_t i = 0; i < LiveState::kMaxMappings + 10; ++i) {
    state.Note(Map(i, 1, uint64_t{0x1000} * i, 0x1000), "", "");
  }
  EXPECT_EQ(Restated(state).size(), LiveState::kMaxThreads + LiveState::kMaxMappings);
}

}  // namespace
}  // namespace xpu::test
