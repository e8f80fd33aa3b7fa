// How steps divide a recording: whose steps each process works in, and the slices of a call tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/query/time_slices.h"
#include "report/workload/steps.h"

namespace xpu {

// Returns for each pid the index in `all`; processes without steps are left out.
std::map<uint32_t, size_t> FindStepOwners(const Analysis& analysis,
                                          const std::vector<StepSeries>& all);

// Each slice gets what --step-range with its number shows.
SlicedTimes SliceBySteps(const Analysis& analysis, const std::vector<StepSeries>& all);

}  // namespace xpu
