// What to look at next, computed from the capture.
#pragma once

#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/filter.h"
#include "report/query/gpu_busy.h"
#include "report/views/summary/hint.h"

namespace xpu {

// At most four, the most telling first. `filter`: the one that was applied.
std::vector<Hint> FindHints(Analysis& analysis, const std::vector<GpuBusy>& gpus,
                            const FilterOptions& filter = {});

}  // namespace xpu
