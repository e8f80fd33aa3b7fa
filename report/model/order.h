// Pass 2: each list in order of time. Writers promise no order.
#pragma once

#include "report/model/model.h"

namespace xpu {

// Lists without a CLOCK_MONOTONIC time (GPU activity, names) keep the order of the file: their
// times are on other clocks. Events of one time keep it too.
void OrderByTime(LoadedEvents& events);

}  // namespace xpu
