#include "report/run_time.h"

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

}  // namespace xpu
