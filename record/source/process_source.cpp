#include "record/source/process_source.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"
#include "record/process/running_processes.h"

namespace xpu {
namespace {

// The idle process has no entry in /proc.
void WriteIdleProcess(uint64_t time_ns, EventSink& sink) {
  ProcessEvent idle;
  idle.time_ns = time_ns;
  idle.kind = ProcessEventKind::kExisting;
  idle.name = sink.Intern("swapper");
  sink.Write(idle);
}

void CountFailedTables(UnwindTables& tables, EventSink& sink) {
  for (const UnwindTables::Failure& failure : tables.TakeFailures()) {
    sink.losses().Add(LossKind::kUnwindTableFailed, 1, 0, {}, failure.path + ": " + failure.reason);
  }
}

// What any user can record, the injected library does alone.
bool UsesBpf(const RecordOptions& options) {
  return options.record_cpu || options.record_off_cpu || UsesProbes(options);
}

}  // namespace

// ---- programs that gain privileges --------------------------------------------------------------

void PrivilegedPrograms::Judge(uint32_t pid, const ProcessTable::Process& process) {
  const bool was_taken_out = process.exec_ns != 0 && process.exec_ns > process.mapping_ns &&
                             process.exec_ns <= process.exit_ns;
  if (was_taken_out) found_.emplace_back(pid, process.name(pid));
}

void PrivilegedPrograms::CountLosses(EventSink& sink) {
  for (const auto& [pid, name] : std::exchange(found_, {})) {
    // A missing mapping proves nothing if the kernel lost records.
    if (sink.losses().total(LossKind::kPerfRecordsLost) > 0) continue;
    sink.losses().Add(LossKind::kPrivilegesGained, 1, pid, {},
                      Format("process {} ({})", pid, name));
  }
}

void PrivilegedPrograms::Finish(EventSink& sink) {
  processes_.ForEachProcess([&](uint32_t pid, const ProcessTable::Process& process) {
    if (process.exit_ns != 0) Judge(pid, process);
  });
  CountLosses(sink);
}

// ---- processes that share memory ----------------------------------------------------------------

void SharedMemory::OnFork(uint32_t parent_pid, uint32_t pid) {
  constexpr size_t kMaxProcesses = 256;
  // After a vfork, too, until the exec.
  const bool shares = ::syscall(SYS_kcmp, parent_pid, pid, KCMP_VM, 0, 0) == 0;
  if (!shares || groups_.size() >= kMaxProcesses) return;
  groups_[pid] = groups_.try_emplace(parent_pid, parent_pid).first->second;
}

void SharedMemory::OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) {
  const auto own = groups_.find(pid);
  if (is_writing_ || own == groups_.end()) return;
  for (const auto& [other, group] : groups_) {
    if (group != own->second || other == pid) continue;
    missing_.push_back({other, start, mapping});
    missing_.back().mapping.tid = other;
  }
}

void SharedMemory::Apply(EventSink& sink) {
  is_writing_ = true;
  for (const auto& [pid, start, mapping] : std::exchange(missing_, {})) {
    processes_.WriteMapping(pid, start, mapping, sink);
  }
  is_writing_ = false;
}

// ---- the source ---------------------------------------------------------------------------------

Result<std::unique_ptr<Source>> ProcessSource::Open(SourceContext& context) {
  std::unique_ptr<ProcessSource> source(new ProcessSource(context));
  const RecordOptions& options = context.options;
  Scope& scope = context.scope;
  if (options.whole_system) scope.kind = Scope::Kind::kAll;
  if (!options.pids.empty()) scope.kind = Scope::Kind::kProcesses;
  // Processes that already run are recorded once their tables exist.
  scope.starts_paused = options.control.StartsPaused() || !scope.is_program();
  if (!options.pids.empty()) {
    auto watched = WatchedProcesses::Open(context.processes);
    if (watched.ok()) {
      source->watched_ = *std::move(watched);
      scope.watched_map_fd = source->watched_->map_fd();
    } else if (UsesBpf(options)) {
      return std::move(watched).error();
    }
  }
  if (scope.is_program()) {
    source->privileged_ = std::make_unique<PrivilegedPrograms>(context.processes);
  }
  XPU_RETURN_IF_ERROR(context.OpenUnwinding());
  return std::unique_ptr<Source>(std::move(source));
}

Status ProcessSource::Arm() {
  const RecordOptions& options = context_.options;
  const Scope& scope = context_.scope;
  armed_ns_ = MonotonicNs();
  if (scope.kind == Scope::Kind::kProcesses && !watched_) return WatchWithoutBpf();
  // For stacks taken inside a process, the GPU source finds its mappings.
  const bool needs_records = UsesBpf(options) || (options.launch_stacks != LaunchStacks::kNone &&
                                                  !context_.stacks_are_inline);
  const bool at_once = (UsesProbes(options) || context_.unwinder) && scope.is_program();
  auto tasks = TaskRecords::Open(
      scope, at_once ? TaskRecords::Wakeup::kAtOnce : TaskRecords::Wakeup::kAtWatermark);
  if (tasks.ok()) {
    tasks_ = std::make_unique<TaskRecords>(*std::move(tasks));
  } else if (needs_records) {
    return std::move(tasks).error();
  }
  context_.has_task_records = tasks_ != nullptr;
  for (const pid_t pid : options.pids) XPU_RETURN_IF_ERROR(watched_->Watch(pid));
  if (context_.unwinder == nullptr || !scope.is_program()) return Ok();
  return context_.unwinder->Follow(scope.program);
}

// The kernel's records of mappings are of all processes, and without BPF nothing says which of them
// come from those that are wanted.
Status ProcessSource::WatchWithoutBpf() {
  for (const pid_t pid : context_.options.pids) {
    UniqueFd running(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!running && errno != ESRCH) return SystemError(Format("-p {}: pidfd_open", pid), errno);
    if (running) running_.push_back(std::move(running));
  }
  if (!context_.options.quiet) {
    std::fputs(
        "xpu-record: -p without CAP_BPF and CAP_PERFMON: a CUDA driver that is loaded later and "
        "processes that are started are not noticed\n",
        stderr);
  }
  return Ok();
}

bool ProcessSource::IsOver() const {
  if (watched_) return !watched_->AnyRuns();
  if (context_.scope.kind != Scope::Kind::kProcesses) return false;
  return std::all_of(running_.begin(), running_.end(),
                     [](const UniqueFd& process) { return AllHaveEnded(process.get()); });
}

void ProcessSource::Begin(EventSink& sink) {
  if (context_.scope.is_program()) return;
  RunningProcesses running;
  const bool all = context_.scope.kind == Scope::Kind::kAll;
  if (all) WriteIdleProcess(armed_ns_, sink);
  for (const pid_t pid : all ? ListProcesses() : context_.options.pids) {
    running.Write(pid, armed_ns_, sink);
  }
  context_.processes.EndRound(MonotonicNs());
  if (context_.unwinder) WaitForTables(sink);
}

// The wait is bounded, because the disk of a busy machine may be slow.
void ProcessSource::WaitForTables(EventSink& sink) {
  constexpr uint64_t kPatienceNs = 5'000'000'000, kStepNs = 50'000'000;
  const uint64_t give_up_ns = MonotonicNs() + kPatienceNs;
  for (uint64_t now_ns = 0; now_ns < give_up_ns; now_ns = MonotonicNs()) {
    const uint64_t until_ns = MonotonicNs() + kStepNs;
    context_.tables->WaitUntil(until_ns);
    DrainTasks(sink);
    if (MonotonicNs() < until_ns) break;
  }
  context_.unwinder->TakeTables();
  context_.unwinder->Apply(sink);
}

void ProcessSource::AfterExec(EventSink& sink) {
  if (tasks_) return;
  const std::string name = ReadComm(Format("/proc/{}/comm", context_.scope.program));
  if (name.empty()) return;
  ProcessEvent event;
  event.time_ns = MonotonicNs();
  event.kind = ProcessEventKind::kExec;
  event.pid = event.tid = static_cast<uint32_t>(context_.scope.program);
  event.name = sink.Intern(name);
  sink.Write(event);
}

std::vector<int> ProcessSource::fds() const {
  std::vector<int> fds;
  if (tasks_) fds = tasks_->fds();
  if (context_.tables) fds.push_back(context_.tables->fd());
  return fds;
}

int ProcessSource::DrainIntervalMs(uint64_t now_ns) const {
  // Mappings must be known before many samples are taken in them.
  constexpr int kForMappings = 5, kWhileTheyCome = 1;
  if (tasks_ && tasks_->was_woken()) return kWhileTheyCome;
  if (!context_.unwinder) return kUsualIntervalMs;
  if (context_.unwinder->IsBusy(now_ns)) return kWhileTheyCome;
  // The kernel reports mappings of a started program at once; looking for them 200 times a second
  // costs 0.4 % of a CPU.
  return context_.scope.is_program() ? kUsualIntervalMs : kForMappings;
}

void ProcessSource::DrainTasks(EventSink& sink) {
  if (tasks_) {
    tasks_->Drain(sink, [&](const PerfRecord& record) {
      const uint32_t pid = PidOf(record);  // 0: of no process
      if (watched_ && pid != 0 && !watched_->IsWatched(pid)) return;
      WritePerfRecord(record, sink);
    });
  }
  context_.processes.EndRound(MonotonicNs());
}

void ProcessSource::Drain(EventSink& sink) {
  DrainTasks(sink);
  moved_.Apply(MonotonicNs(), sink);
  shared_.Apply(sink);
  if (context_.unwinder) {
    context_.unwinder->Apply(sink);
  } else if (context_.tables) {
    context_.tables->TakeFinished();  // the GPU source queries the tables that it needs
  }
  if (context_.tables) CountFailedTables(*context_.tables, sink);
  if (privileged_) privileged_->CountLosses(sink);
}

void ProcessSource::CountLosses(EventSink& sink) {
  if (tasks_) tasks_->CountLosses(sink);
  if (watched_) watched_->CountLosses(sink.losses());
  if (context_.options.symbols != SymbolDetail::kNone) {
    sink.losses().Add(LossKind::kMappingsDropped, context_.processes.TakePastMappingsDropped());
  }
  if (context_.unwinder && context_.processes.TakeMappingsRefused() > 0) {
    sink.losses().Add(LossKind::kUnwindTableFailed, 1, 0, {},
                      "more executable mappings than are kept for unwinding");
  }
}

// A file system that does not respond is known as such after two seconds (remote_mounts.cpp), which
// the program need not have lived for.
void ProcessSource::Stop(EventSink& sink, bool /*may_go_on*/) {
  constexpr uint64_t kPatienceNs = 3'000'000'000;
  Drain(sink);
  if (context_.tables) {
    context_.tables->WaitForLookups(MonotonicNs() + kPatienceNs);
    CountFailedTables(*context_.tables, sink);
  }
  CountLosses(sink);
  if (privileged_) privileged_->Finish(sink);
}

}  // namespace xpu
