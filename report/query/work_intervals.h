// GPU work by time, where it may overlap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "report/trace/correlation.h"

namespace xpu {

class WorkIntervals {
 public:
  struct Interval {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint32_t index = 0;  // in Correlation::work
  };

  void Add(const GpuWork& work, uint32_t index) {
    all_.push_back({work.start_ns, work.end_ns, index});
  }
  // After the last Add, before the first Around.
  void Sort();

  // Those that overlap [start_ns, end_ns) lie in it, in order of their start.
  std::span<const Interval> Around(uint64_t start_ns, uint64_t end_ns) const;

 private:
  std::vector<Interval> all_;
  std::vector<uint64_t> end_so_far_;  // the largest end of all_[0..i]
};

}  // namespace xpu
