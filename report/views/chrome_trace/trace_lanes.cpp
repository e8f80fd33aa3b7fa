#include "report/views/chrome_trace/trace_lanes.h"

namespace xpu {

size_t TraceLanes::Place(uint64_t start_ns, uint64_t end_ns) {
  for (; !busy_.empty() && busy_.top().first <= start_ns; busy_.pop()) {
    free_.push(busy_.top().second);
  }
  size_t lane = busy_.size();  // a new one: none is free
  if (!free_.empty()) {
    lane = free_.top();
    free_.pop();
  }
  busy_.emplace(end_ns, lane);
  return lane;
}

bool NestingLane::Place(uint64_t start_ns, uint64_t end_ns) {
  while (!ends_.empty() && ends_.back() <= start_ns) ends_.pop_back();
  if (!ends_.empty() && ends_.back() < end_ns) return false;
  ends_.push_back(end_ns);
  return true;
}

}  // namespace xpu
