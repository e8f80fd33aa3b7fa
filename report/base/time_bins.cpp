#include "report/base/time_bins.h"

#include <algorithm>

#include "format/base/saturated.h"

namespace xpu {
namespace {

uint64_t RoundWidth(uint64_t least_ns) {
  uint64_t power_ns = 1000;
  while (power_ns * 5 < least_ns) power_ns *= 10;
  for (const uint64_t times : {1, 2, 5}) {
    if (power_ns * times >= least_ns) return power_ns * times;
  }
  return power_ns * 10;
}

}  // namespace

TimeBins::TimeBins(uint64_t begin_ns, uint64_t width_ns, size_t count)
    : begin_ns_(begin_ns),
      width_ns_(width_ns),
      end_ns_(AddSaturated(begin_ns, MultiplySaturated(width_ns, count))),
      parts_(count),
      steps_(count + 1),
      first_(count) {}

TimeBins TimeBins::Round(uint64_t begin_ns, uint64_t end_ns, uint64_t most) {
  const uint64_t span_ns = end_ns - std::min(begin_ns, end_ns);
  const uint64_t width_ns = RoundWidth(span_ns / most + 1);
  return {begin_ns, width_ns, span_ns / width_ns + 1};
}

void TimeBins::Add(uint64_t start_ns, uint64_t end_ns, double amount) {
  const uint64_t from_ns = std::max(start_ns, begin_ns_);
  const uint64_t to_ns = std::min(end_ns, end_ns_);
  if (from_ns > to_ns || from_ns == end_ns_) return;
  if (to_ns - from_ns != end_ns - start_ns) {
    amount *= static_cast<double>(to_ns - from_ns) / static_cast<double>(end_ns - start_ns);
  }
  const size_t first = (from_ns - begin_ns_) / width_ns_;
  // The bin of the last nanosecond.
  const size_t last =
      std::max(first, (to_ns - std::min<uint64_t>(to_ns - from_ns, 1) - begin_ns_) / width_ns_);
  first_ = std::min(first_, first);
  last_ = std::max(last_, last);
  if (first == last) {
    parts_[first] += amount;
    return;
  }
  const double per_ns = amount / static_cast<double>(to_ns - from_ns);
  parts_[first] += per_ns * static_cast<double>(StartOf(first + 1) - from_ns);
  parts_[last] += per_ns * static_cast<double>(to_ns - StartOf(last));
  steps_[first + 1] += per_ns * static_cast<double>(width_ns_);
  steps_[last] -= per_ns * static_cast<double>(width_ns_);
}

}  // namespace xpu
