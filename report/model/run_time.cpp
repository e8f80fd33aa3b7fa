#include "report/model/run_time.h"

#include <algorithm>

namespace xpu {

uint64_t StartOf(const Model& model) {
  const auto& infos = model.events.recording_info;
  return infos.empty() ? 0 : infos.front().start_ns;
}

uint64_t RunTimeNs(const Model& model) {
  const LoadedEvents& events = model.events;
  if (events.recording_info.empty() || events.recording_end.empty()) return 0;
  const uint64_t start_ns = StartOf(model);
  const uint64_t end_ns = events.recording_end.back().time_ns;
  return end_ns - std::min(end_ns, start_ns);
}

uint64_t RecordedUntilNs(const Model& model) {
  if (model.events.recording_info.empty()) return 0;
  const uint64_t start_ns = StartOf(model);
  uint64_t last_ns = start_ns;
  // Lists are in order of time.
  const auto see = [&](const auto& list, auto time) {
    if (list.size() > 0) last_ns = std::max(last_ns, list[list.size() - 1].*time);
  };
  see(model.events.process_events, &ProcessEvent::time_ns);
  see(model.events.mappings, &Mapping::time_ns);
  see(model.events.cpu_samples, &CpuSample::time_ns);
  see(model.events.api_calls, &ApiCall::start_ns);
  see(model.events.launch_stacks, &LaunchStack::time_ns);
  see(model.events.probe_hits, &ProbeHit::time_ns);
  see(model.events.clock_pairs, &ClockPair::after_ns);
  return last_ns - start_ns;
}

}  // namespace xpu
