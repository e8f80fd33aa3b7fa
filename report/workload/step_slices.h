// The steps of all processes as slices of a call tree: slice 12 is step 12 of each.
#pragma once

#include <vector>

#include "report/analysis/analysis.h"
#include "report/query/time_slices.h"
#include "report/workload/steps.h"

namespace xpu {

// Each slice gets what --step-range with its number shows.
SlicedTimes SliceBySteps(const Analysis& analysis, const std::vector<StepSeries>& all);

}  // namespace xpu
