#include "record/sources.h"

#include "format/base/file.h"
#include "format/base/text.h"

namespace xpu {

Result<Sources> Sources::Prepare(const RecordOptions& options,
                                 std::vector<std::string>& environment) {
  Sources sources;
  sources.options_ = options;
  if (options.record_gpu && !options.inject) {
    XPU_ASSIGN_OR_RETURN(ProbeSource probes, ProbeSource::Open(options, environment));
    sources.probes_.emplace(std::move(probes));
  } else if (options.record_gpu) {
    XPU_ASSIGN_OR_RETURN(GpuSource gpu, GpuSource::Open(options, environment));
    sources.gpu_.emplace(std::move(gpu));
  }
  return sources;
}

Status Sources::Arm(pid_t target) {
  const bool needs_mappings = options_.record_cpu || options_.launch_stacks != LaunchStacks::kNone;
  const auto wakeup = probes_ ? TaskSource::Wakeup::kAtOnce : TaskSource::Wakeup::kHalfFull;
  if (auto tasks = TaskSource::Open(target, wakeup); tasks.ok()) {
    tasks_.emplace(*std::move(tasks));
  } else if (needs_mappings) {
    return std::move(tasks).error();
  }
  if (options_.record_cpu) {
    XPU_ASSIGN_OR_RETURN(CpuSource cpu, CpuSource::Open(target, options_.frequency_hz));
    cpu_.emplace(std::move(cpu));
  }
  if (gpu_) XPU_RETURN_IF_ERROR(gpu_->Arm());
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

std::vector<int> Sources::fds() const { return tasks_ ? tasks_->fds() : std::vector<int>{}; }

void Sources::Drain(EventSink& sink) {
  if (tasks_) {
    tasks_->Drain(sink, [this](const PerfMapping& mapping) {
      if (probes_) probes_->SeeMapping(mapping);
    });
  }
  if (probes_) probes_->Drain(sink);
  if (cpu_) cpu_->Drain(sink);
  if (gpu_) gpu_->Drain(sink);
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
