// How long threads ran, which context switches say exactly, what they did meanwhile, which CPU
// samples say, and when they waited for the GPU.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/sampled_events.h"
#include "report/model/intervals.h"

namespace xpu {

// The synchronization calls of each thread: while it is in one, it waits for the GPU, whether it
// runs or not.
class SynchronizationCalls {
 public:
  explicit SynchronizationCalls(const Analysis& analysis);

  bool IsInOne(const Owner& owner, uint64_t time_ns) const;

 private:
  std::map<ThreadKey, std::vector<Interval>> threads_;  // by time; they do not overlap
};

// Why threads waited.
class WaitReasons {
 public:
  // Must outlive this.
  explicit WaitReasons(const Analysis& analysis) : analysis_(analysis), gpu_calls_(analysis) {}

  // In a synchronization call "GPU (futex)", otherwise WaitName.
  std::string Of(const Owned<OffCpuWait>& wait) const;

 private:
  const Analysis& analysis_;
  const SynchronizationCalls gpu_calls_;
};

// The running time of one thread.
struct RunningTime {
  struct Part {
    uint32_t sample = 0;  // in LoadedEvents::cpu_samples
    uint64_t ns = 0;
  };
  Owner owner;
  uint64_t total_ns = 0;
  // They add up to the total. None: the thread has no samples.
  std::vector<Part> parts;
};

// Divides the running time of each thread over its samples. Where a filter leaves out the sums,
// and of threads without any, each sample stands for its own weight.
std::vector<RunningTime> FindRunningTimes(const Analysis& analysis);

}  // namespace xpu
