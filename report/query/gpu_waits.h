// What the CPU waited for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/gpu_names.h"
#include "report/query/statistics.h"
#include "report/trace/correlation.h"

namespace xpu {

// GPU work by time, where it may overlap.
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

// A synchronization that held up a thread for some time.
bool IsTimedWait(const Analysis& analysis, const GpuWork& work);

// By the call that waits and the kernel or copy that ran meanwhile: "cudaStreamSynchronize:
// gemm(float*)". A synchronization of a stream waits for its work, others for all work of their
// process. Of what ran at once, the time counts for what began first. Of more waits at once than
// programs have, all that ran counts as "cudaStreamSynchronize: [any work]".
std::vector<Statistics> WaitTimes(const Analysis& analysis, const GpuNames& names);

}  // namespace xpu
