// What the kernel's scheduler counts for each thread.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

#include "format/base/file.h"

namespace xpu {

struct SchedulerTimes {
  uint64_t run_ns = 0;
  // Ready to run, on a CPU that was busy; without a wait that has not ended.
  uint64_t queued_ns = 0;
  uint64_t runs = 0;
};

// `thread`: its directory, such as "/proc/7/task/8"; "/proc/7" is that of a process's first thread.
// Zeros: it has ended, or the kernel does not count.
inline SchedulerTimes ReadSchedulerTimes(const std::string& thread) {
  SchedulerTimes times;
  auto text = ReadFile(thread + "/schedstat");
  if (text.ok()) {
    std::sscanf(text->c_str(), "%" SCNu64 "%" SCNu64 "%" SCNu64, &times.run_ns, &times.queued_ns,
                &times.runs);
  }
  return times;
}

}  // namespace xpu
