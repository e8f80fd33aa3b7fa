#include "record/sources.h"

#include <cstdio>
#include <utility>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/unwind_cache.h"

namespace xpu {

namespace {

void CountFailedTables(UnwindTables& tables, EventSink& sink) {
  for (const UnwindTables::Failure& failure : tables.TakeFailures()) {
    sink.losses().Add(LossKind::kUnwindTableFailed, 1, 0, {}, failure.path + ": " + failure.reason);
  }
}

}  // namespace

void Sources::OpenTables() {
  if (tables_ != nullptr) return;
  UnwindTables::Options options;
  options.cache_folder = UnwindCache::DefaultFolder();
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
                 "--call-graph=fp walks by frame pointers"};
  }
  XPU_ASSIGN_OR_RETURN(UnwindMaps maps, UnwindMaps::Create());
  OpenTables();
  unwinder_ = std::make_unique<Unwinder>(*tables_, std::move(maps));
  PrepareTables(*tables_, options_.command.front(), environment);
  unwinder_->TakeTables();
  return Ok();
}

Result<Sources> Sources::Prepare(const RecordOptions& options,
                                 std::vector<std::string>& environment) {
  Sources sources;
  sources.options_ = options;
  XPU_RETURN_IF_ERROR(sources.OpenUnwinder(environment));
  if (ProbeSource::IsWanted(options)) {
    XPU_ASSIGN_OR_RETURN(ProbeSource probes,
                         ProbeSource::Open(options, environment, sources.maps()));
    sources.probes_.emplace(std::move(probes));
  }
  if (options.record_gpu && options.inject) {
    XPU_ASSIGN_OR_RETURN(GpuSource gpu, GpuSource::Open(options, environment));
    sources.gpu_.emplace(std::move(gpu));
  }
  return sources;
}

Status Sources::Arm(pid_t target) {
  // Of stacks taken in the process the GPU source finds them itself.
  const bool needs_mappings =
      options_.record_cpu || probes_ ||
      (options_.launch_stacks != LaunchStacks::kNone && !takes_stacks_inline());
  const auto wakeup =
      probes_ || unwinder_ ? TaskSource::Wakeup::kAtOnce : TaskSource::Wakeup::kHalfFull;
  if (auto tasks = TaskSource::Open(target, wakeup); tasks.ok()) {
    tasks_.emplace(*std::move(tasks));
  } else if (needs_mappings) {
    return std::move(tasks).error();
  } else if (gpu_) {
    gpu_->TellOfProcesses(target);
  }
  if (unwinder_) XPU_RETURN_IF_ERROR(unwinder_->Follow(target));
  if (options_.record_cpu) {
    XPU_ASSIGN_OR_RETURN(
        CpuSource cpu, CpuSource::Open(target, options_.cpu_events, options_.frequency_hz, maps()));
    cpu_.emplace(std::move(cpu));
  }
  if (gpu_) XPU_RETURN_IF_ERROR(gpu_->Arm(maps(), tables_.get()));
  if (probes_) XPU_RETURN_IF_ERROR(probes_->Arm(target));
  return Ok();
}

void Sources::Describe(EventSink& sink) const {
  if (cpu_) cpu_->Describe(sink);
}

void Sources::AfterExec(pid_t target, EventSink& sink) const {
  if (tasks_) return;
  auto name = ReadFile(Format("/proc/{}/comm", target));
  if (!name.ok()) return;
  ProcessEvent event;
  event.time_ns = MonotonicNs();
  event.kind = ProcessEventKind::kExec;
  event.pid = event.tid = static_cast<uint32_t>(target);
  event.name = sink.Intern(std::string_view(*name).substr(0, name->find('\n')));
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
  if (!unwinder_) return kUsual;
  return unwinder_->IsBusy(now_ns) ? kWhileTheyCome : kForMappings;
}

void Sources::Drain(EventSink& sink) {
  if (tasks_) {
    tasks_->Drain(sink, [this](const PerfRecord& record) {
      if (unwinder_) unwinder_->See(record);
      const auto* mapping = std::get_if<PerfMapping>(&record);
      if (probes_ && mapping != nullptr) probes_->SeeMapping(*mapping);
    });
  }
  if (unwinder_) {
    unwinder_->Apply(sink);
  } else if (tables_) {
    tables_->TakeFinished();  // the GPU source asks for the state of those that it wants
  }
  if (tables_) CountFailedTables(*tables_, sink);
  if (probes_) probes_->Drain(sink);
  if (cpu_) cpu_->Drain(sink);
  if (gpu_) gpu_->Drain(sink);
  if (HitFiles* hits = sink.hits()) hits->EndRound();
}

void Sources::CountLosses(EventSink& sink) {
  if (cpu_) cpu_->CountLosses(sink);
  if (gpu_) gpu_->CountLosses(sink);
  if (probes_) probes_->CountLosses(sink);
}

void Sources::Stop(EventSink& sink) {
  Drain(sink);
  CountLosses(sink);
  if (gpu_) gpu_->Stop(sink);
  if (probes_) probes_->Stop(sink);
}

}  // namespace xpu
