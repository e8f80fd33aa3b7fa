#include "report/run_time.h"

#include <algorithm>

namespace xpu {

uint64_t RunTimeNs(const Model& model) {
  const EventBatch& events = model.events;
  if (events.recording_info.empty() || events.recording_end.empty()) return 0;
  const uint64_t start_ns = events.recording_info.front().start_ns;
  const uint64_t end_ns = events.recording_end.back().time_ns;
  return end_ns - std::min(end_ns, start_ns);
}

}  // namespace xpu
