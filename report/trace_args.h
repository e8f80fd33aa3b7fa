// The details of GPU work that a trace shows beside its slice.
#pragma once

#include <string>
#include <string_view>

#include "report/correlate.h"

namespace xpu {

std::string_view TraceCategory(WorkKind kind);
// The members of a JSON object.
std::string TraceArgs(const EventBatch& events, const GpuWork& work);

}  // namespace xpu
