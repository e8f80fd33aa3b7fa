// Amounts over time, in bins of equal length: what keeps counters and the lanes of a page small,
// however many events they are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace xpu {

class TimeBins {
 public:
  // `count` bins of `width_ns` each, from `begin_ns` on.
  TimeBins(uint64_t begin_ns, uint64_t width_ns, size_t count);
  // At most `most` bins and one more, of 1, 2 or 5 times a power of ten, 1 us at least, in which
  // both times lie.
  static TimeBins Round(uint64_t begin_ns, uint64_t end_ns, uint64_t most);

  // Adds `amount`, the same in each nanosecond of the span; without what lies outside all bins.
  void Add(uint64_t start_ns, uint64_t end_ns, double amount);

  // Calls visit(bin, amount) for each bin from the first to the last that was added to. Forgets
  // everything. The rounding of long sums may leave a little below 0.
  template <typename Visit>
  void Drain(Visit&& visit) {
    double covered = 0;
    for (size_t i = first_; i <= last_ && i < parts_.size(); ++i) {
      covered += steps_[i];
      visit(i, parts_[i] + covered);
      parts_[i] = steps_[i] = 0;
    }
    first_ = parts_.size();
    last_ = 0;
  }

  bool empty() const { return first_ == parts_.size(); }
  uint64_t width_ns() const { return width_ns_; }
  uint64_t StartOf(size_t bin) const { return begin_ns_ + bin * width_ns_; }

 private:
  uint64_t begin_ns_;
  uint64_t width_ns_;
  uint64_t end_ns_;
  std::vector<double> parts_;  // of spans that cover a part of the bin
  // The amount added per bin from here on by spans that cover it whole: a span costs the same
  // however many bins it covers.
  std::vector<double> steps_;
  size_t first_;  // of the bins that may have something
  size_t last_ = 0;
};

}  // namespace xpu
