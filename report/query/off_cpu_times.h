// The time in which threads did not run, and what they did instead.
#pragma once

#include <algorithm>
#include <cstdint>

#include "format/events.h"

namespace xpu {

// Whether the thread waited for something else than a CPU.
inline bool IsWait(OffCpuState state) {
  return state != OffCpuState::kPreempted && state != OffCpuState::kCreated &&
         state != OffCpuState::kRunning;
}

struct OffCpuTimes {
  uint64_t blocked_ns = 0;   // until it was woken
  uint64_t runnable_ns = 0;  // until it ran
};

inline OffCpuTimes TimesOf(const OffCpuWait& wait) {
  const uint64_t end_ns = std::max(wait.start_ns, wait.end_ns);
  const bool is_known = wait.ready_ns >= wait.start_ns && wait.ready_ns <= end_ns;
  const uint64_t ready_ns = is_known ? wait.ready_ns : end_ns;
  return {.blocked_ns = ready_ns - wait.start_ns, .runnable_ns = end_ns - ready_ns};
}

}  // namespace xpu
