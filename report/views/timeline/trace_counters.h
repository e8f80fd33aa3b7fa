// Counters of a trace: how busy each GPU is, the bandwidth of its copies, and how many launches
// wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/views/timeline/trace_sink.h"
#include "report/views/timeline/trace_tracks.h"

namespace xpu {

// Something spread over time, as its mean in buckets of equal length: what keeps the counters of a
// trace small, however many events they are made of.
class TraceBuckets {
 public:
  static constexpr uint64_t kMostBuckets = 2000;

  // Divides [begin_ns, end_ns) into buckets of 1, 2 or 5 times a power of ten, 1 us at least.
  TraceBuckets(uint64_t begin_ns, uint64_t end_ns);

  // `amount`, the same in each nanosecond of a span within the range.
  void Add(uint64_t start_ns, uint64_t end_ns, double amount);

  // Calls write(start_ns, mean per nanosecond) for each bucket whose mean is another than that of
  // the one before, and for the end. Forgets everything.
  template <typename Write>
  void Drain(Write&& write);

  uint64_t width_ns() const { return width_ns_; }

 private:
  size_t IndexOf(uint64_t time_ns) const;
  uint64_t StartOf(size_t bucket) const { return begin_ns_ + bucket * width_ns_; }

  const uint64_t begin_ns_;
  const uint64_t width_ns_;
  std::vector<double> parts_;  // of spans that cover a part of the bucket
  // The amount added per bucket from here on by spans that cover it whole: a span costs the same
  // however many buckets it covers.
  std::vector<double> steps_;
  size_t first_;  // of the buckets that may have something
  size_t last_ = 0;
};

template <typename Write>
void TraceBuckets::Drain(Write&& write) {
  double covered = 0;
  double before = 0;
  for (size_t i = first_; i <= last_ && i < parts_.size(); ++i) {
    covered += steps_[i];
    const double mean = (parts_[i] + covered) / static_cast<double>(width_ns_);
    if (mean != before) write(StartOf(i), mean);
    before = mean;
    parts_[i] = steps_[i] = 0;
  }
  if (before != 0) write(StartOf(last_ + 1), 0.0);
  first_ = parts_.size();
  last_ = 0;
}

// Up to `end_ns`. Returns the length of the buckets that the counters are means of, 0: there is
// nothing to count.
uint64_t WriteTraceCounters(const Analysis& analysis, uint64_t end_ns, TraceTracks& tracks,
                            TraceSink& sink);

}  // namespace xpu
