// Where a thread was in the end.
#pragma once

#include <cstdint>
#include <string>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/query/readable_paths.h"

namespace xpu {

// ReadablePaths::OwnFunctions of the last sample, wait or call of the thread, if it has Python
// functions of the last one with these: a thread that is ended is in the kernel at last.
std::string LastPlaceOf(const Analysis& analysis, CallPaths& paths, ReadablePaths& readable,
                        uint32_t pid, uint32_t tid);

}  // namespace xpu
