#include "record/process/process_tracker.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

// Converts ticks since boot, which also count while the machine sleeps, to CLOCK_MONOTONIC.
uint64_t MonotonicOfTicks(uint64_t ticks) {
  timespec since_boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const uint64_t boot_ns = static_cast<uint64_t>(since_boot.tv_sec) * 1'000'000'000 +
                           static_cast<uint64_t>(since_boot.tv_nsec);
  const uint64_t now_ns = MonotonicNs();
  const auto per_second = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  const uint64_t age_ns = boot_ns - std::min(boot_ns, ticks * (1'000'000'000 / per_second));
  return now_ns - std::min(now_ns, age_ns);
}

ProcessEvent EventOf(ProcessEventKind kind, uint32_t pid, uint64_t time_ns) {
  ProcessEvent event;
  event.time_ns = time_ns;
  event.kind = kind;
  event.pid = event.tid = pid;
  return event;
}

}  // namespace

ProcessStat ParseProcessStat(std::string_view text) {
  // pid (name) state parent ...: the name may contain anything.
  constexpr int kParent = 2;
  constexpr int kStart = 20;
  ProcessStat stat;
  const size_t behind_name = text.rfind(')');
  if (behind_name == std::string_view::npos) return stat;
  text.remove_prefix(behind_name + 1);
  for (int field = 1; field <= kStart && !text.empty(); ++field) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    if (field == kParent) std::from_chars(word.data(), word.data() + word.size(), stat.parent_pid);
    if (field == kStart) std::from_chars(word.data(), word.data() + word.size(), stat.start_ticks);
  }
  return stat;
}

void ProcessTracker::Start(uint32_t pid, const std::string& name, EventSink& sink) {
  auto text = ReadFile(Format("/proc/{}/stat", pid));
  const ProcessStat stat = text.ok() ? ParseProcessStat(*text) : ProcessStat{};
  const uint32_t parent = stat.parent_pid;
  if (parent > 1 && processes_.Find(parent) == nullptr) {
    ProcessEvent event = EventOf(ProcessEventKind::kExisting, parent, MonotonicNs());
    event.name = sink.Intern(ReadComm(Format("/proc/{}/comm", parent)));
    sink.Write(event);
  }
  ProcessEvent fork = EventOf(ProcessEventKind::kFork, pid, MonotonicOfTicks(stat.start_ticks));
  fork.parent_pid = fork.parent_tid = parent;
  sink.Write(fork);
  ProcessEvent named = EventOf(ProcessEventKind::kName, pid, MonotonicNs());
  named.name = sink.Intern(name);
  sink.Write(named);
}

void ProcessTracker::Observe(uint32_t pid, EventSink& sink) {
  const std::string name = ReadComm(Format("/proc/{}/comm", pid));
  if (processes_.Find(pid) == nullptr) {
    Start(pid, name, sink);
  } else {
    // A program loads the library once, so this is a new program.
    ProcessEvent event = EventOf(ProcessEventKind::kExec, pid, MonotonicNs());
    event.name = sink.Intern(name);
    sink.Write(event);
  }
  processes_.ApplyNotes();
}

void ProcessTracker::ObserveThread(uint32_t pid, uint32_t tid, EventSink& sink) const {
  if (tid == pid) return;
  const std::string name = ReadComm(Format("/proc/{}/task/{}/comm", pid, tid));
  if (name.empty()) return;
  ProcessEvent event = EventOf(ProcessEventKind::kName, pid, MonotonicNs());
  event.tid = tid;
  event.name = sink.Intern(name);
  sink.Write(event);
}

void ProcessTracker::ObserveEnd(uint32_t pid, EventSink& sink) {
  sink.Write(EventOf(ProcessEventKind::kExit, pid, MonotonicNs()));
}

}  // namespace xpu
