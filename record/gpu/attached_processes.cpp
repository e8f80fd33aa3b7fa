#include "record/gpu/attached_processes.h"

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/gpu/injection_reach.h"
#include "record/process/process_maps.h"
#include "record/process/process_tracker.h"

namespace xpu {
namespace {

// Whether the process has its driver from its parent, by a fork: a program of its own would have it
// at another address.
bool IsForked(uint32_t pid, uint64_t driver_start) {
  auto stat = ReadFile(Format("/proc/{}/stat", pid));
  if (!stat.ok()) return false;
  auto mappings = ReadProcessMaps(ParseProcessStat(*stat).parent_pid);
  if (!mappings.ok()) return false;
  const ProcessMapping* mapping = FindMapping(*mappings, driver_start);
  return mapping != nullptr && mapping->start_address == driver_start &&
         IsCudaDriver(mapping->path);
}

}  // namespace

AttachedProcesses::AttachedProcesses(ProcessTable& processes, InjectServer& server,
                                     AttachTarget what, bool takes_forked)
    : processes_(processes), server_(server), what_(std::move(what)), takes_forked_(takes_forked) {
  processes.AddListener(this);
}

void AttachedProcesses::OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) {
  // Number 0 is a process of another pid namespace.
  if (pid == 0 || !IsCudaDriver(processes_.file(mapping.file).path)) return;
  if (!processes_.IsCurrent(pid, mapping) || known_.contains(pid)) return;
  if (!takes_forked_ && IsForked(pid, start)) {
    known_[pid].may_be_attached_to = false;
    return;
  }
  known_[pid] = {};
  reached_.erase(pid);
  if (!is_paused_) wanted_.insert(pid);
}

void AttachedProcesses::Forget(uint32_t pid) {
  known_.erase(pid);
  wanted_.erase(pid);
}

// The kernel's records of both may have come at once.
void AttachedProcesses::OnEnd(uint32_t pid) {
  if (wanted_.contains(pid) && !reached_.contains(pid)) ended_.push_back(pid);
  Forget(pid);
}

void AttachedProcesses::CountEnded(EventSink& sink, uint32_t pid) {
  sink.losses().Add(LossKind::kInjectionUnknown, 1, pid, {},
                    Format("process {}: it ended before it could be attached to", pid));
}

void AttachedProcesses::Resume() {
  is_paused_ = false;
  for (const auto& [pid, known] : known_) {
    if (known.may_be_attached_to) wanted_.insert(pid);
  }
}

void AttachedProcesses::RequestWanted() {
  // A library that is about to leave must be out of the process first.
  std::erase_if(wanted_, [&](uint32_t pid) {
    if (server_.HasAdopted(static_cast<pid_t>(pid))) return false;
    threads_.Request(Choose(what_, static_cast<pid_t>(pid)));
    ++under_way_;
    return true;
  });
}

void AttachedProcesses::Update(EventSink& sink) {
  RequestWanted();
  for (const uint32_t pid : std::exchange(ended_, {})) CountEnded(sink, pid);
  for (AttachThreads::Finished& finished : threads_.TakeFinished()) {
    --under_way_;
    const auto pid = static_cast<uint32_t>(finished.pid);
    if (finished.result.ok()) {
      Attached& attached = *finished.result;
      AppendFormat(
          news_, "process {}: library loaded; thread {} was stopped for {:.3f} ms, attempt {}\n",
          pid, attached.tid, static_cast<double>(attached.held_ns) / 1e6, attached.attempts);
      server_.Adopt(std::move(attached.connection), finished.pid, MonotonicNs());
      reached_.insert(pid);
      continue;
    }
    const Error& error = finished.result.error();
    if (error.kind == ErrorKind::kNotFound) {
      AppendFormat(news_, "process {}: {}\n", pid, error.message);
      const auto known = known_.find(pid);
      const bool has_failed = known != known_.end() && known->second.has_failed;
      Forget(pid);
      if (!reached_.contains(pid) && !has_failed) CountEnded(sink, pid);
      continue;
    }
    sink.losses().Add(LossKind::kProcessNotReached, 1, pid, {},
                      Format("process {}: {}", pid, error.message));
    if (const auto known = known_.find(pid); known != known_.end()) {
      known->second.may_be_attached_to = error.kind == ErrorKind::kBusy;
      if (std::exchange(known->second.has_failed, true)) continue;
    }
    AppendFormat(failures_, "xpu-record: process {}: GPU activity is not recorded: {}\n", pid,
                 error.message);
    if (!error.hint.empty()) AppendFormat(failures_, "hint: {}\n", error.hint);
  }
}

}  // namespace xpu
