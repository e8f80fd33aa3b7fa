// One wait of a thread: how long it did not run, and the names of what it waited for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/events.h"
#include "report/analysis/analysis.h"
#include "report/base/intervals.h"
#include "report/model/recorded_time.h"

namespace xpu {

// Whether the thread waited for something else than a CPU.
inline bool IsWait(OffCpuState state) {
  return state != OffCpuState::kPreempted && state != OffCpuState::kCreated &&
         state != OffCpuState::kRunning;
}

// Whether it is a moment in a wait, listed because the GPU of the process finished nothing.
inline bool IsListed(const OffCpuWait& wait) {
  return wait.is_open && wait.start_ns == wait.end_ns;
}

struct OffCpuTimes {
  uint64_t blocked_ns = 0;   // until it was woken
  uint64_t runnable_ns = 0;  // until it ran
};

// The times of the part from `from_ns` to `to_ns`.
inline OffCpuTimes TimesOf(const OffCpuWait& wait, uint64_t from_ns = 0,
                           uint64_t to_ns = UINT64_MAX) {
  const uint64_t end_ns = std::max(wait.start_ns, wait.end_ns);
  const bool is_known = wait.ready_ns >= wait.start_ns && wait.ready_ns <= end_ns;
  const uint64_t ready_ns = is_known ? wait.ready_ns : end_ns;
  const auto inside = [&](uint64_t start, uint64_t end) {
    start = std::max(start, from_ns);
    end = std::min(end, to_ns);
    return end - std::min(start, end);
  };
  return {.blocked_ns = inside(wait.start_ns, ready_ns), .runnable_ns = inside(ready_ns, end_ns)};
}

// The times of the part that is shown.
inline OffCpuTimes TimesOf(const Analysis& analysis, const OffCpuWait& wait) {
  const Selection& shown = analysis.shown;
  OffCpuTimes times = TimesOf(wait, shown.from_ns, shown.to_ns);
  const auto own = shown.outside_of_process.find(wait.pid);
  const std::vector<Pause>& outside =
      own == shown.outside_of_process.end() ? shown.outside_of_others : *own->second;
  // It may last longer than a step that is shown.
  const auto leave_out = [&](const Pause&, uint64_t start_ns, uint64_t end_ns) {
    const OffCpuTimes part =
        TimesOf(wait, std::max(start_ns, shown.from_ns), std::min(end_ns, shown.to_ns));
    times.blocked_ns -= part.blocked_ns;
    times.runnable_ns -= part.runnable_ns;
  };
  ForEachOverlap(outside, wait.start_ns, wait.end_ns, leave_out);
  return times;
}

std::string_view StateName(OffCpuState state);

// For a thread that waited, the system call in which it did and its kind of file: "futex", "read
// pipe"; otherwise its state.
std::string WaitName(const OffCpuWait& wait);

// The waker: "worker/4711", "[interrupt]".
std::string WakerName(const Analysis& analysis, const OffCpuWait& wait);

}  // namespace xpu
