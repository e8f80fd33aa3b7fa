#include "record/gpu/attached_processes.h"

#include <algorithm>
#include <iterator>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"
#include "record/gpu/cuda_file.h"
#include "record/gpu/injection_reach.h"
#include "record/process/process_maps.h"

namespace xpu {
namespace {

// Children that may use CUDA later are checked this often, and for a hundredth of the time at most.
constexpr uint64_t kCheckEveryNs = 250'000'000;
constexpr uint64_t kCheckShare = 100;

// The parent from which the process has its driver, by a fork; 0: it has loaded it by itself, so
// that it has it at another address.
uint32_t ParentWithDriver(uint32_t pid, uint64_t driver_start) {
  auto stat = ReadFile(Format("/proc/{}/stat", pid));
  if (!stat.ok()) return 0;
  const uint32_t parent_pid = ParseProcessStat(*stat).parent_pid;
  auto mappings = ReadProcessMaps(parent_pid);
  if (!mappings.ok()) return 0;
  const ProcessMapping* mapping = FindMapping(*mappings, driver_start);
  const bool has_it =
      mapping != nullptr && mapping->start_address == driver_start && IsCudaDriver(mapping->path);
  return has_it ? parent_pid : 0;
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
  if (IsRecorder(pid)) return;  // its helper that asks the GPU for clocks
  const uint32_t parent_pid = takes_forked_ ? 0 : ParentWithDriver(pid, start);
  if (parent_pid == 0) return Want(pid);
  AddForked(parent_pid, pid);
  next_check_ns_ = 0;  // it may have used CUDA for a long time
}

void AttachedProcesses::OnFork(uint32_t parent_pid, uint32_t pid) {
  if (pid == 0 || !known_.contains(parent_pid) || known_.contains(pid)) return;
  AddForked(parent_pid, pid);
}

void AttachedProcesses::AddForked(uint32_t parent_pid, uint32_t pid) {
  known_[pid] = {.may_be_attached_to = false};
  forked_[pid] = parent_pid;
}

void AttachedProcesses::Want(uint32_t pid) {
  known_[pid] = {};
  reached_.erase(pid);
  if (!is_paused_) wanted_.insert(pid);
}

// Most have nothing to do with CUDA, and end soon or become another program.
void AttachedProcesses::CheckForked(uint64_t now_ns) {
  if (is_paused_ || forked_.empty() || now_ns < next_check_ns_) return;
  for (auto child = forked_.begin(); child != forked_.end();) {
    auto& [pid, parent_pid] = *child;
    const CudaFile file = CudaFileOf(pid, std::exchange(parent_pid, 0));
    if (file == CudaFile::kOwn) Want(pid);
    child = file == CudaFile::kNone ? std::next(child) : forked_.erase(child);
  }
  const uint64_t end_ns = MonotonicNs();
  next_check_ns_ = end_ns + std::max(kCheckEveryNs, kCheckShare * (end_ns - now_ns));
}

void AttachedProcesses::Forget(uint32_t pid) {
  known_.erase(pid);
  forked_.erase(pid);
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
  next_check_ns_ = 0;
  CheckForked(MonotonicNs());
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
  CheckForked(MonotonicNs());
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
