#include "report/views/chrome_trace/trace_buckets.h"

#include <algorithm>

namespace xpu {
namespace {

uint64_t WidthFor(uint64_t span_ns) {
  const uint64_t least_ns = span_ns / TraceBuckets::kMostBuckets + 1;
  uint64_t power_ns = 1000;
  while (power_ns * 5 < least_ns) power_ns *= 10;
  for (const uint64_t times : {1, 2, 5}) {
    if (power_ns * times >= least_ns) return power_ns * times;
  }
  return power_ns * 10;
}

}  // namespace

TraceBuckets::TraceBuckets(uint64_t begin_ns, uint64_t end_ns)
    : begin_ns_(begin_ns), width_ns_(WidthFor(end_ns - std::min(begin_ns, end_ns))) {
  parts_.resize((end_ns - std::min(begin_ns, end_ns)) / width_ns_ + 1);
  steps_.resize(parts_.size() + 1);
  first_ = parts_.size();
}

size_t TraceBuckets::IndexOf(uint64_t time_ns) const {
  const uint64_t bucket = (time_ns - std::min(time_ns, begin_ns_)) / width_ns_;
  return static_cast<size_t>(std::min<uint64_t>(bucket, parts_.size() - 1));
}

void TraceBuckets::Add(uint64_t start_ns, uint64_t end_ns, double amount) {
  const size_t first = IndexOf(start_ns);
  // The bucket of the last nanosecond.
  const size_t last = std::max(first, IndexOf(end_ns - std::min<uint64_t>(end_ns, 1)));
  first_ = std::min(first_, first);
  last_ = std::max(last_, last);
  if (first == last) {
    parts_[first] += amount;
    return;
  }
  const double per_ns = amount / static_cast<double>(end_ns - start_ns);
  parts_[first] += per_ns * static_cast<double>(StartOf(first + 1) - start_ns);
  parts_[last] += per_ns * static_cast<double>(end_ns - StartOf(last));
  steps_[first + 1] += per_ns * static_cast<double>(width_ns_);
  steps_[last] -= per_ns * static_cast<double>(width_ns_);
}

}  // namespace xpu
