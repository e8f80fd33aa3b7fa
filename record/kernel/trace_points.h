// Finds kernel tracepoints by name, for perf_event_open.
#pragma once

#include <cstdint>
#include <string>

#include "format/base/result.h"

namespace xpu {

// `name`: "sched:sched_switch". Uses tracefs where it is mounted, otherwise a private mount, which
// requires CAP_SYS_ADMIN.
Result<uint64_t> FindTracepoint(const std::string& name);

}  // namespace xpu
