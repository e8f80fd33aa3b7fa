// Which CPU samples stand for a stretch of time.
//
// Most gaps of a GPU are shorter than the sampling period, so most samples lie in no gap or in one
// of hundreds: a sample stands for the time around it, half a period to either side, or half the
// way to the next sample of its thread where that one is not far.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/sampled_events.h"

namespace xpu {

class IdleSamples {
 public:
  // Both must outlive this.
  IdleSamples(Analysis& analysis, CallPaths& paths);

  struct Share {
    const CpuSample* sample = nullptr;
    uint64_t ns = 0;
  };
  struct Stretch {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
  };
  // Appends the shares of the thread's samples, and the stretches in which it did not run.
  void OfThread(const Owner& owner, Stretch stretch, std::vector<Share>& shares,
                std::vector<Stretch>& rest) const;
  // Appends the shares of what else ran in the process and those that descend from it, threads that
  // only spin for work left out. Returns how long nothing did.
  uint64_t OfOthers(const Owner& owner, Stretch stretch, std::vector<Share>& shares);

 private:
  using ThreadKey = std::pair<ProcessId, uint32_t>;
  using Places = std::vector<uint32_t>;  // in samples_, ascending

  uint64_t TimeOf(uint32_t sample) const { return samples_[sample]->time_ns; }
  Stretch AroundOf(const Places& thread, size_t at) const;
  const Places& BelowProcess(ProcessId process);
  bool DescendsFrom(ProcessId process, ProcessId root) const;
  bool Spins(uint32_t sample);

  Analysis& analysis_;
  CallPaths& paths_;
  std::vector<const CpuSample*> samples_;  // also those that a filter took out; in order of time
  const uint64_t period_ns_;
  std::map<ThreadKey, Places> threads_;
  std::map<ProcessId, Places> below_;         // by the root of the tree
  std::unordered_map<uint32_t, bool> spins_;  // by path
};

}  // namespace xpu
