// Wraps perf_event_open for the event sources.
#pragma once

#include <vector>

#include <linux/perf_event.h>
#include <sys/types.h>

#include "format/base/handle.h"

namespace xpu {

// Opens close-on-exec. On failure the descriptor is empty and errno is set.
UniqueFd OpenPerfEvent(const perf_event_attr& attributes, pid_t pid, int cpu);

// An attribute block of the size that this build knows.
perf_event_attr PerfAttributes(uint32_t type, uint64_t config);

// The numbers of the online CPUs.
std::vector<int> OnlineCpus();
// Parses "0-3,8"; invalid parts are left out.
std::vector<int> ParseCpuList(const char* text);

// kernel.perf_event_paranoid; 2 if it cannot be read.
int PerfParanoidLevel();

}  // namespace xpu
