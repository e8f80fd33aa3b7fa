#include "record/session/sources.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <poll.h>

#include "record/base/clock.h"
#include "record/cpu/cpu_source.h"
#include "record/gpu/gpu_source.h"
#include "record/gpu_metrics/gpu_metrics_source.h"
#include "record/off_cpu/off_cpu_source.h"
#include "record/probes/probe_source.h"
#include "record/source/container_source.h"
#include "record/source/process_source.h"

namespace xpu {
namespace {

// Processes come first, so that mappings are known before stacks in them are read.
constexpr OpenSource* kSources[] = {
    &ProcessSource::Open, &ContainerSource::Open, &ProbeSource::Open,      &CpuSource::Open,
    &OffCpuSource::Open,  &GpuSource::Open,       &GpuMetricsSource::Open,
};

}  // namespace

Result<Sources> Sources::Open(const RecordOptions& options, std::vector<std::string> environment,
                              ProcessTable& processes, const TestHooks& hooks) {
  Sources all(std::make_unique<SourceContext>(options, processes));
  all.context_->environment = std::move(environment);
  all.context_->table_delay = hooks.table_delay;
  all.context_->device_buffers = hooks.device_buffers;
  if (hooks.hang_ns != 0) all.context_->hang_ns = hooks.hang_ns;
  std::vector<OpenSource*> wanted(std::begin(kSources), std::end(kSources));
  wanted.insert(wanted.end(), hooks.sources.begin(), hooks.sources.end());
  for (OpenSource* open : wanted) {
    XPU_ASSIGN_OR_RETURN(std::unique_ptr<Source> source, open(*all.context_));
    if (source) all.sources_.push_back(std::move(source));
  }
  return all;
}

LaunchStackSource Sources::launch_stacks() const {
  const RecordOptions& options = context_->options;
  if (context_->stacks_are_inline) return LaunchStackSource::kInProcess;
  if (!options.record_gpu || options.launch_stacks == LaunchStacks::kNone) {
    return LaunchStackSource::kNone;
  }
  return options.inject ? LaunchStackSource::kMarker : LaunchStackSource::kProbes;
}

Status Sources::Arm(pid_t program) {
  context_->scope.program = program;
  for (const auto& source : sources_) XPU_RETURN_IF_ERROR(source->Arm());
  return Ok();
}

void Sources::Begin(EventSink& sink) {
  constexpr uint64_t kPatienceNs = 5'000'000'000;
  constexpr int kStepMs = 2;
  for (const auto& source : sources_) source->Begin(sink);
  const uint64_t give_up_ns = MonotonicNs() + kPatienceNs;
  while (IsStarting() && MonotonicNs() < give_up_ns) {
    ::poll(nullptr, 0, kStepMs);
    Drain(sink);
  }
}

void Sources::AfterExec(EventSink& sink) {
  for (const auto& source : sources_) source->AfterExec(sink);
}

void Sources::Switch(const SwitchState& wanted) {
  state_ = wanted;
  for (const auto& source : sources_) source->Switch(wanted);
}

void Sources::Drain(EventSink& sink) {
  for (const auto& source : sources_) source->Drain(sink);
}

void Sources::BeforeNextPart(EventSink& sink) {
  for (const auto& source : sources_) source->BeforeNextPart(sink);
}

void Sources::CountLosses(EventSink& sink) {
  for (const auto& source : sources_) source->CountLosses(sink);
}

void Sources::EndSampling() {
  SwitchState wanted = state_;
  wanted.is_on = false;
  Switch(wanted);
}

bool Sources::IsStarting() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto& source) { return source->IsStarting(); });
}

void Sources::Stop(EventSink& sink, bool early) {
  const bool may_go_on = early || !context_->scope.is_program();
  for (const auto& source : sources_) source->Stop(sink, may_go_on);
  context_->processes.EndRound(MonotonicNs());  // applies what the sources reported at their ends
  context_->processes.RemoveListeners();
}

std::vector<int> Sources::fds() const {
  std::vector<int> fds;
  for (const auto& source : sources_) {
    const std::vector<int> some = source->fds();
    fds.insert(fds.end(), some.begin(), some.end());
  }
  return fds;
}

int Sources::DrainIntervalMs(uint64_t now_ns) const {
  int interval_ms = Source::kUsualIntervalMs;
  for (const auto& source : sources_) {
    interval_ms = std::min(interval_ms, source->DrainIntervalMs(now_ns));
  }
  return interval_ms;
}

std::vector<RangeChange> Sources::TakeRangeChanges() {
  std::vector<RangeChange> changes;
  for (const auto& source : sources_) {
    for (RangeChange& change : source->TakeRangeChanges()) changes.push_back(std::move(change));
  }
  return changes;
}

bool Sources::IsOver() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto& source) { return source->IsOver(); });
}

}  // namespace xpu
