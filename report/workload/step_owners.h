// Whose steps a process works in: its own, or those of the nearest process that it descends from,
// as one that loads data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/workload/steps.h"

namespace xpu {

// By pid, which of `all` it is; processes of none are left out.
std::map<uint32_t, size_t> FindStepOwners(const Analysis& analysis,
                                          const std::vector<StepSeries>& all);

}  // namespace xpu
