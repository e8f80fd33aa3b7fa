// The API calls of each thread, to find the one that something without an id happened in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "report/trace/launch.h"

namespace xpu {

class CallsByThread {
 public:
  // Those of `launches` that have a call. Pids and tids are the recorder's.
  explicit CallsByThread(std::span<const Launch> launches);

  // What is looked for: an instant, or an interval when its end is known.
  struct Moment {
    uint32_t pid = 0;
    uint32_t tid = 0;
    uint64_t start_ns = 0;
    std::optional<uint64_t> end_ns;
    uint64_t next_start_ns = UINT64_MAX;  // of the next such thing on the thread
  };
  // The call that the moment lies in: the probe of a driver's function lies within the call of the
  // runtime around it. Or the call that lies in it, or begins less than kToleranceNs later: the
  // probe at the entry of the very function that CUPTI reports comes before the call.
  std::optional<uint32_t> Find(const Moment& moment) const;

 private:
  std::span<const Launch> launches_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> calls_;  // by (pid, tid), by time
};

}  // namespace xpu
