#include "record/process/process_tracker.h"

#include <algorithm>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

uint64_t MonotonicOfTicks(uint64_t ticks) {
  const uint64_t now_ns = MonotonicNs();
  return now_ns - std::min(now_ns, AgeNs(ticks));
}

ProcessEvent EventOf(ProcessEventKind kind, uint32_t pid, uint64_t time_ns) {
  ProcessEvent event;
  event.time_ns = time_ns;
  event.kind = kind;
  event.pid = event.tid = pid;
  return event;
}

}  // namespace

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
