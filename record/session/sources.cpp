#include "record/session/sources.h"

#include <cstdio>
#include <utility>

#include <unistd.h>

#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"
#include "record/unwind/unwind_cache.h"

namespace xpu {

namespace {

// What runs where nothing does has no entry in /proc.
void TellOfIdle(uint64_t time_ns, EventSink& sink) {
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

}  // namespace

void Sources::OpenTables() {
  if (tables_ != nullptr) return;
  UnwindTables::Options options;
  options.cache_folder = UnwindCache::DefaultFolder(::geteuid());
  tables_ = std::make_unique<UnwindTables>(std::move(options));
  if (options_.verbose && !tables_->cache_problem().empty()) {
    std::fprintf(stderr, "unwind tables are not kept on disk: %s\n",
                 tables_->cache_problem().c_str());
  }
}

// Where stacks are taken in the kernel, by BPF; in the programs, by their injected library.
Status Sources::OpenUnwinder(const std::vector<std::string>& environment) {
  if (options_.call_graph == CallGraphMode::kFramePointers) return Ok();
  const bool in_process = WantsInlineStacks(options_);
  const bool in_kernel =
      options_.record_cpu || !options_.probes.empty() ||
      (options_.record_gpu && options_.launch_stacks != LaunchStacks::kNone && !in_process);
  if (in_process) OpenTables();
  if (!in_kernel) return Ok();
  if (!CanWalkByTables()) {
    if (options_.call_graph == CallGraphMode::kAuto) return Ok();
    return Error{ErrorKind::kUnsupported, "--call-graph=eh needs Linux 5.17 or newer",
                 "--call-graph=fp uses frame pointers"};
  }
  XPU_ASSIGN_OR_RETURN(UnwindMaps maps, UnwindMaps::Create());
  std::unique_ptr<PythonStacks> python;
  if (options_.walk_python) {
    XPU_ASSIGN_OR_RETURN(python, PythonStacks::Create());
  }
  OpenTables();
  unwinder_ = std::make_unique<Unwinder>(*tables_, std::move(maps), std::move(python));
  if (options_.command.empty()) return Ok();
  PrepareTables(*tables_, options_.command.front(), environment);
  unwinder_->TakeTables();
  return Ok();
}

Status Sources::WatchRunning() {
  if (options_.whole_system) subject_.kind = Subject::Kind::kAll;
  if (!options_.pids.empty()) subject_.kind = Subject::Kind::kProcesses;
  // What runs already is recorded once its tables are there.
  subject_.starts_paused = options_.control.StartsPaused() || !subject_.is_program();
  if (options_.pids.empty()) return Ok();
  XPU_ASSIGN_OR_RETURN(WatchedProcesses watched, WatchedProcesses::Open());
  watched_.emplace(std::move(watched));
  subject_.watched_map_fd = watched_->map_fd();
  return Ok();
}

Result<Sources> Sources::Prepare(const RecordOptions& options,
                                 std::vector<std::string>& environment) {
  Sources sources;
  sources.options_ = options;
  XPU_RETURN_IF_ERROR(sources.WatchRunning());
  XPU_RETURN_IF_ERROR(sources.OpenUnwinder(environment));
  if (ProbeSource::IsWanted(options)) {
    XPU_ASSIGN_OR_RETURN(
        ProbeSource probes,
        ProbeSource::Open(options, sources.subject_, environment, sources.unwinder_.get()));
    sources.probes_.emplace(std::move(probes));
  }
  if (options.record_gpu && options.inject) {
    XPU_ASSIGN_OR_RETURN(GpuSource gpu, GpuSource::Open(options, environment));
    sources.gpu_.emplace(std::move(gpu));
  }
  return sources;
}

Status Sources::Arm(pid_t target) {
  subject_.program = target;
  armed_ns_ = MonotonicNs();
  // Of stacks taken in the process the GPU source finds them itself.
  const bool needs_mappings =
      options_.record_cpu || probes_ ||
      (options_.launch_stacks != LaunchStacks::kNone && !takes_stacks_inline());
  const bool at_once = (probes_ || unwinder_) && subject_.is_program();
  const auto wakeup = at_once ? TaskSource::Wakeup::kAtOnce : TaskSource::Wakeup::kAtWatermark;
  if (auto tasks = TaskSource::Open(subject_, wakeup); tasks.ok()) {
    tasks_.emplace(*std::move(tasks));
  } else if (needs_mappings) {
    return std::move(tasks).error();
  } else if (gpu_) {
    gpu_->TellOfProcesses(target);
  }
  for (const pid_t pid : options_.pids) XPU_RETURN_IF_ERROR(watched_->Watch(pid));
  if (unwinder_ && subject_.is_program()) XPU_RETURN_IF_ERROR(unwinder_->Follow(target));
  if (options_.record_cpu) {
    XPU_ASSIGN_OR_RETURN(CpuSource cpu, CpuSource::Open(subject_, options_.cpu_events,
                                                        options_.frequency_hz, unwinder_.get()));
    cpu_.emplace(std::move(cpu));
  }
  if (gpu_) {
    XPU_RETURN_IF_ERROR(gpu_->Arm(unwinder_.get(), tables_.get()));
    unreached_.ExpectInjection({.library = gpu_->library(), .invitation = gpu_->invitation()});
  }
  if (probes_ && subject_.is_program()) XPU_RETURN_IF_ERROR(probes_->Arm(target));
  return Ok();
}

void Sources::TellOfRunning(EventSink& sink) {
  if (subject_.is_program()) return;
  RunningProcesses running;
  const bool all = subject_.kind == Subject::Kind::kAll;
  if (all) TellOfIdle(armed_ns_, sink);
  for (const pid_t pid : all ? ListProcesses() : options_.pids) {
    running.Tell(pid, armed_ns_, sink, [&](const PerfRecord& record) { SeeRecord(record, sink); });
  }
  if (unwinder_) WaitForTables(sink);
}

// Bounded: the disk of a machine that has much to do may be slow.
void Sources::WaitForTables(EventSink& sink) {
  constexpr uint64_t kPatienceNs = 5'000'000'000, kStepNs = 50'000'000;
  const uint64_t give_up_ns = MonotonicNs() + kPatienceNs;
  unwinder_->Apply(sink);
  for (uint64_t now_ns = 0; now_ns < give_up_ns; now_ns = MonotonicNs()) {
    const uint64_t until_ns = MonotonicNs() + kStepNs;
    tables_->WaitUntil(until_ns);
    DrainTasks(sink);
    if (MonotonicNs() < until_ns) break;
  }
  unwinder_->TakeTables();
  unwinder_->Apply(sink);
}

void Sources::Describe(EventSink& sink) const {
  if (cpu_) cpu_->Describe(sink);
}

void Sources::AfterExec(pid_t target, EventSink& sink) const {
  if (tasks_) return;
  const std::string name = ReadComm(Format("/proc/{}/comm", target));
  if (name.empty()) return;
  ProcessEvent event;
  event.time_ns = MonotonicNs();
  event.kind = ProcessEventKind::kExec;
  event.pid = event.tid = static_cast<uint32_t>(target);
  event.name = sink.Intern(name);
  sink.Write(event);
}

CallGraph Sources::call_graph() const {
  return tables_ ? CallGraph::kTables : CallGraph::kFramePointers;
}

std::vector<int> Sources::fds() const {
  std::vector<int> fds;
  if (tasks_) fds = tasks_->fds();
  if (tables_) fds.push_back(tables_->fd());
  if (gpu_) fds.push_back(gpu_->fd());  // a program that waits for us
  return fds;
}

int Sources::DrainIntervalMs(uint64_t now_ns) const {
  constexpr int kUsual = 25;
  // What is mapped is to be known before many samples are taken in it.
  constexpr int kForMappings = 5, kWhileTheyCome = 1;
  constexpr int kForRanges = 1;
  if (options_.control.capture_range) return kForRanges;
  if (tasks_ && tasks_->was_woken()) return kWhileTheyCome;
  if (!unwinder_) return kUsual;
  if (unwinder_->IsBusy(now_ns)) return kWhileTheyCome;
  // Of the mappings of a program that we started the kernel tells at once, and looking for them 200
  // times a second took 0.4 % of a CPU. What libraries in the programs ask waits in their rings.
  return subject_.is_program() && !gpu_ ? kUsual : kForMappings;
}

void Sources::SeeRecord(const PerfRecord& record, EventSink& sink) {
  WritePerfRecord(record, sink);
  if (unwinder_) unwinder_->See(record);
  if (subject_.is_program()) unreached_.See(record);
  const auto* mapping = std::get_if<PerfMapping>(&record);
  if (probes_ && mapping != nullptr) probes_->SeeMapping(*mapping);
}

void Sources::DrainTasks(EventSink& sink) {
  if (!tasks_) return;
  const uint64_t now_ns = MonotonicNs();
  tasks_->Drain(sink, [&](const PerfRecord& record) {
    if (watched_) {
      watched_->See(record, now_ns);
      const uint32_t pid = PidOf(record);  // 0: of none
      if (pid != 0 && !watched_->IsWatched(pid)) return;
    }
    SeeRecord(record, sink);
  });
  if (watched_) watched_->ForgetEnded(now_ns);
  unreached_.EndRound(sink);
  if (const std::string news = unreached_.TakeNews(); options_.verbose) {
    std::fputs(ForTerminal(news).c_str(), stderr);
  }
}

void Sources::Switch(const Wanted& wanted) {
  if (cpu_) cpu_->Switch(wanted.is_on);
  if (probes_) probes_->Switch(wanted.is_on);
  if (gpu_) gpu_->Pause(!wanted.user_on);
}

std::vector<RangeChange> Sources::TakeRangeChanges() {
  return gpu_ ? gpu_->TakeRangeChanges() : std::vector<RangeChange>();
}

void Sources::Drain(EventSink& sink) {
  DrainTasks(sink);
  if (unwinder_) {
    unwinder_->Apply(sink);
  } else if (tables_) {
    tables_->TakeFinished();  // the GPU source asks for the state of those that it wants
  }
  if (tables_) CountFailedTables(*tables_, sink);
  if (probes_) probes_->Drain(sink);
  if (cpu_) cpu_->Drain(sink);
  if (gpu_) gpu_->Drain(sink);
  if (hits_ != nullptr) hits_->EndRound();
}

void Sources::CountLosses(EventSink& sink) {
  if (tasks_) tasks_->CountLosses(sink);
  if (watched_) watched_->CountLosses(sink.losses());
  if (cpu_) cpu_->CountLosses(sink);
  if (gpu_) gpu_->CountLosses(sink);
  if (probes_) probes_->CountLosses(sink);
  if (hits_ != nullptr) sink.losses().Add(LossKind::kMappingsDropped, hits_->TakeDropped());
}

void Sources::EndSampling() {
  if (cpu_) cpu_->Switch(false);
}

void Sources::Stop(EventSink& sink, bool early) {
  const bool may_go_on = early || !subject_.is_program();
  Drain(sink);
  CountLosses(sink);
  if (gpu_) gpu_->Stop(sink, may_go_on);
  if (probes_) probes_->Stop(sink, may_go_on);
  unreached_.Finish(sink, gpu_ ? gpu_->reports() : InjectionReports());
}

}  // namespace xpu
