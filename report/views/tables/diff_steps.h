// --diff --by step: how long steps take, and what they do.
#pragma once

#include "report/views/tables/table.h"
#include "report/views/view.h"

namespace xpu {

// A row for each quantity of a step: duration, busy and idle time, kernels, bytes. Whether it
// differs is decided by all steps, or, of several captures on both sides, by one median of each.
Table DiffSteps(const DiffCaptures& captures);

}  // namespace xpu
