// Pass 2: each list in order of time. Writers promise no order.
#pragma once

#include "report/model/model.h"

namespace xpu {

// By their events' first time. Events without one, events of one time and the work on the GPU,
// whose order the correlation makes, keep the order of the file.
void OrderByTime(LoadedEvents& events);

}  // namespace xpu
