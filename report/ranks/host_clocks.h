// The clocks of hosts, refined by the ends of collectives.
//
// Wall clocks of hosts differ by some hundred microseconds, and drift. All ranks of an all-reduce
// or an all-gather end it at about the same time, so that the differences of their ends show how
// far the clocks are off: a straight line over the recording, which outliers do not move.
#pragma once

#include <vector>

#include "report/model/model.h"
#include "report/ranks/collectives.h"

namespace xpu {

// The clocks of Model::host_clocks with what was found, for LoadCaptures; empty: there is only one
// host, or no two hosts have collectives in common. `trace` is as the wall clocks have it.
std::vector<HostClock> RefineHostClocks(const Trace& trace, const Collectives& collectives);

}  // namespace xpu
