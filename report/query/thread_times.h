// CPU and GPU time by process and thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/analysis/analysis.h"

namespace xpu {

struct ThreadTime {
  ProcessId process;  // none: no record names it
  uint32_t pid = 0;   // 0: not known
  uint32_t tid = 0;
  uint64_t cpu = 0;  // of its samples: ns, or what they count
  uint64_t samples = 0;
  uint64_t gpu_ns = 0;  // of the work that it launched
  uint64_t gpu_work = 0;
  std::string process_name;
  std::string thread_name;
};

// The busiest first: those of a process together, by CPU and GPU time of the process, then of the
// thread. Threads without any are left out.
std::vector<ThreadTime> ThreadTimes(const Analysis& analysis);

// The same for whole processes: tid is 0, thread_name empty.
std::vector<ThreadTime> ProcessTimes(const std::vector<ThreadTime>& threads);

}  // namespace xpu
