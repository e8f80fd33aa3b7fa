// Which call may have started some GPU work, when nothing but the time is to tell
// (`--correlate=time`).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "report/trace/launch.h"

namespace xpu {

class LaunchesByTime {
 public:
  LaunchesByTime(std::span<const Launch> launches,
                 const std::unordered_map<InstanceId, CudaProcess>& processes,
                 const ApiNames& names);

  struct Work {
    InstanceId instance;
    WorkKind kind = WorkKind::kKernel;
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    bool shares_launch = false;  // with others: it is of a graph's node, and of its launch
  };

  // The last call of the work's process that starts such work, began at most `window_ns` before it
  // and was not taken by other work. Ask for the latest work first: calls start one thing each, and
  // what queues for a GPU is run in order. Only a copy or set that ends before its call returns may
  // be one of several of that call. (Taking the nearest call whether it is taken or not gave
  // a recording of a transformer, whose kernels queue, 11 % of its GPU time right.)
  std::optional<uint32_t> Take(const Work& work, uint64_t window_ns);

 private:
  // A process is its pid, where that is known.
  using Key = std::tuple<uint32_t, InstanceId, WorkKind>;
  struct Start {
    uint64_t time_ns;
    uint64_t end_ns;
    uint32_t launch;
    bool starts_many;
    // How far before this one the next is that may not be taken yet; 0: it is this one itself.
    uint32_t to_free = 0;
  };
  using Starts = std::vector<Start>;
  static std::optional<size_t> LastFree(Starts& starts, size_t end);
  Key KeyOf(InstanceId instance, uint32_t pid, WorkKind kind) const;

  std::unordered_map<InstanceId, uint32_t> pids_;
  std::map<Key, Starts> starts_;  // by time
};

}  // namespace xpu
