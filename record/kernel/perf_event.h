// perf_event_open, as our sources use it.
#pragma once

#include <vector>

#include <linux/perf_event.h>
#include <sys/types.h>

#include "format/base/handle.h"

namespace xpu {

// Close-on-exec; an empty descriptor leaves the reason in errno.
UniqueFd OpenPerfEvent(const perf_event_attr& attributes, pid_t pid, int cpu);

// An attribute block of the size that this build knows.
perf_event_attr PerfAttributes(uint32_t type, uint64_t config);

// The numbers of the CPUs that are online.
std::vector<int> OnlineCpus();
// "0-3,8" as numbers; invalid parts are left out.
std::vector<int> ParseCpuList(const char* text);

// kernel.perf_event_paranoid; 2 when it cannot be read.
int PerfParanoidLevel();

}  // namespace xpu
