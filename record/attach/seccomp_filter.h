// Whether a program's seccomp filter lets the library do what it has to: evaluated here, before
// anything is done in the process, because a filter may kill it for one forbidden call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "format/base/result.h"
#include "record/attach/traced_thread.h"

namespace xpu {

// What the filter returns for a system call: SECCOMP_RET_... with its data. nullopt: the filter is
// no valid program.
std::optional<uint32_t> RunSeccompFilter(const std::vector<sock_filter>& filter,
                                         const seccomp_data& call);

// The name of a system call that loader, library or CUPTI make and the filter does not allow;
// empty: there is none.
std::string ForbiddenCall(const std::vector<sock_filter>& filter);

// Of a stopped thread. An error where a filter forbids something, or cannot be read.
Status CheckSeccomp(const TracedThread& thread);

}  // namespace xpu
