#include "record/gpu/attached_processes.h"

#include <algorithm>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"
#include "record/gpu/cuda_use.h"
#include "record/gpu/injection_reach.h"
#include "record/process/process_maps.h"

namespace xpu {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kPatienceNs = 1'000 * kMs;
// Idle processes are checked this often, or less: for a hundredth of the time at most, for a
// thousandth where the kernel reports them.
constexpr uint64_t kCheckEveryNs = 250 * kMs;
constexpr uint64_t kCheckShare = 100;
constexpr uint64_t kWatchedShare = 1000;
// But for as long as cuInit may take, after each eighth of the time since it opened its device.
constexpr uint64_t kInitNs = 8'000 * kMs;
constexpr uint64_t kInitShare = 8;
constexpr uint64_t kSoonestNs = 20 * kMs;
constexpr uint64_t kAtOnceNs = 2 * kMs;  // for all

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
                                     AttachTarget what, bool are_named)
    : processes_(processes), server_(server), what_(std::move(what)), are_named_(are_named) {
  processes.AddListener(this);
}

bool AttachedProcesses::IsBusy() const {
  const uint64_t now_ns = MonotonicNs();
  return !wanted_.empty() || std::any_of(idle_.begin(), idle_.end(), [](const auto& idle) {
    return !idle.second.is_checked;
  }) || std::any_of(under_way_.begin(), under_way_.end(), [&](const auto& job) {
    return now_ns < job.second.since_ns + kPatienceNs;
  });
}

void AttachedProcesses::OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) {
  // Number 0 is a process of another pid namespace.
  if (pid == 0 || !IsCudaDriver(processes_.file(mapping.file).path)) return;
  if (!processes_.IsCurrent(pid, mapping) || known_.contains(pid)) return;
  if (IsRecorder(pid)) return;  // its helper that asks the GPU for clocks
  are_named_ ? Want(pid) : Await(pid, ParentWithDriver(pid, start));
}

void AttachedProcesses::OnFork(uint32_t parent_pid, uint32_t pid) {
  if (pid != 0 && known_.contains(parent_pid) && !known_.contains(pid)) Await(pid, parent_pid);
}

void AttachedProcesses::Await(uint32_t pid, uint32_t parent_pid) {
  known_[pid] = {.may_be_attached_to = false};
  idle_[pid] = {.parent_pid = parent_pid, .is_watched = opens_.WatchDeviceOf(pid)};
  Plan(pid, MonotonicNs());
}

void AttachedProcesses::Plan(uint32_t pid, uint64_t due_ns) {
  idle_[pid].due_ns = due_ns;
  plan_.emplace(due_ns, pid);
}

void AttachedProcesses::Want(uint32_t pid) {
  known_[pid] = {};
  reached_.erase(pid);
  if (!is_paused_) wanted_.insert(pid);
}

// Most have nothing to do with CUDA, and end soon or become another program.
void AttachedProcesses::CheckIdle() {
  const uint64_t begin_ns = MonotonicNs();
  for (const uint32_t pid : opens_.Take()) {
    const auto idle = idle_.find(pid);
    if (idle == idle_.end()) continue;
    idle->second.opened_ns = begin_ns;
    const uint64_t due_ns = begin_ns + kSoonestNs;
    if (idle->second.due_ns > due_ns) Plan(pid, due_ns);
  }
  for (uint64_t now_ns = begin_ns;
       !is_paused_ && !plan_.empty() && now_ns < begin_ns + kAtOnceNs;) {
    const auto [due_ns, pid] = *plan_.begin();
    if (due_ns > now_ns) break;
    plan_.erase(plan_.begin());
    const auto at = idle_.find(pid);
    if (at == idle_.end() || at->second.due_ns != due_ns) continue;
    Idle& idle = at->second;
    // A mapping that is new since the first check is the process's own.
    const bool is_first = !std::exchange(idle.is_checked, true);
    const CudaUse use = CudaUseOf(pid, is_first ? idle.parent_pid : 0);
    const uint64_t check_ns = std::exchange(now_ns, MonotonicNs());
    if (use != CudaUse::kNone) {
      idle_.erase(at);
      if (use == CudaUse::kOwn) Want(pid);
      continue;
    }
    const uint64_t share = idle.is_watched ? kWatchedShare : kCheckShare;
    uint64_t pause_ns = std::max(kCheckEveryNs, share * idle_.size() * (now_ns - check_ns));
    const uint64_t initializes_ns = now_ns - idle.opened_ns;
    if (initializes_ns < kInitNs) {
      pause_ns = std::min(pause_ns, std::max(kSoonestNs, initializes_ns / kInitShare));
    }
    Plan(pid, now_ns + pause_ns);
  }
}

void AttachedProcesses::Forget(uint32_t pid) {
  const auto known = known_.find(pid);
  if (known == known_.end()) return;
  if (const auto job = under_way_.find(pid); job != under_way_.end()) {
    job->second.is_forgotten = true;
    job->second.has_failed = known->second.has_failed;
  }
  known_.erase(known);
  idle_.erase(pid);
  wanted_.erase(pid);
}

// The kernel's records of both may have come at once.
void AttachedProcesses::OnEnd(uint32_t pid) {
  if (wanted_.contains(pid) && !reached_.contains(pid)) ended_.push_back(pid);
  Forget(pid);
}

void AttachedProcesses::CountEnded(EventSink& sink, uint32_t pid) {
  sink.losses().Add(LossKind::kInjectionUnknown, 1, pid, {},
                    Format("process {}: it ended, or became another program, before it could be "
                           "attached to",
                           pid));
}

void AttachedProcesses::Resume() {
  is_paused_ = false;
  CheckIdle();
  for (const auto& [pid, known] : known_) {
    if (known.may_be_attached_to) wanted_.insert(pid);
  }
}

void AttachedProcesses::RequestWanted() {
  // A library that is about to leave must be out of the process first, and one attach at an end.
  std::erase_if(wanted_, [&](uint32_t pid) {
    if (server_.HasAdopted(static_cast<pid_t>(pid)) || under_way_.contains(pid)) return false;
    under_way_[pid] = {.since_ns = MonotonicNs()};
    threads_.Request(Choose(what_, static_cast<pid_t>(pid)));
    return true;
  });
}

void AttachedProcesses::Update(EventSink& sink) {
  CheckIdle();
  RequestWanted();
  for (const uint32_t pid : std::exchange(ended_, {})) CountEnded(sink, pid);
  TakeFinished(sink);
}

void AttachedProcesses::Finish(EventSink& sink, bool is_between_windows) {
  Pause();
  was_cut_off_ = is_between_windows;
  threads_.End();
  TakeFinished(sink);
  for (const uint32_t pid : std::exchange(wanted_, {})) {
    if (was_cut_off_ && reached_.contains(pid)) continue;
    TakeFailure(sink, pid, {ErrorKind::kBusy, "the recording ended before it was its turn", {}});
  }
}

void AttachedProcesses::TakeFinished(EventSink& sink) {
  for (AttachThreads::Finished& finished : threads_.TakeFinished()) {
    const auto pid = static_cast<uint32_t>(finished.pid);
    const UnderWay job = under_way_.extract(pid).mapped();
    const auto known = known_.find(pid);
    const bool has_failed = known != known_.end() ? known->second.has_failed : job.has_failed;
    if (job.is_forgotten ||
        (!finished.result.ok() && finished.result.error().kind == ErrorKind::kNotFound)) {
      if (!job.is_forgotten) Forget(pid);
      if (!reached_.contains(pid) && !has_failed) CountEnded(sink, pid);
      continue;
    }
    if (!finished.result.ok()) {
      if (!was_cut_off_ || !reached_.contains(pid)) TakeFailure(sink, pid, finished.result.error());
      continue;
    }
    Attached& attached = *finished.result;
    AppendFormat(news_,
                 "process {}: library loaded; thread {} was stopped for {:.3f} ms, attempt {}\n",
                 pid, attached.tid, static_cast<double>(attached.held_ns) / 1e6, attached.attempts);
    server_.Adopt(std::move(attached.connection), finished.pid, MonotonicNs());
    reached_.insert(pid);
  }
}

void AttachedProcesses::TakeFailure(EventSink& sink, uint32_t pid, const Error& error) {
  sink.losses().Add(LossKind::kProcessNotReached, 1, pid, {},
                    Format("process {}: {}", pid, error.message));
  if (const auto known = known_.find(pid); known != known_.end()) {
    known->second.may_be_attached_to = error.kind == ErrorKind::kBusy;
    if (std::exchange(known->second.has_failed, true)) return;
  }
  AppendFormat(failures_, "xpu-record: process {}: GPU activity is not recorded: {}\n", pid,
               error.message);
  if (!error.hint.empty()) AppendFormat(failures_, "hint: {}\n", error.hint);
}

}  // namespace xpu
