// The kernel's tracepoints, by the number that perf_event_open takes.
#pragma once

#include <cstdint>
#include <string>

#include "format/base/result.h"

namespace xpu {

// `name`: "sched:sched_switch". Asks tracefs: where it is mounted, else through a mount of our own
// that nobody sees, for which it takes CAP_SYS_ADMIN.
Result<uint64_t> FindTracepoint(const std::string& name);

}  // namespace xpu
