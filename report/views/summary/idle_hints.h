// Why a GPU had nothing to do: before its steady state, in it, and after its last work.
#pragma once

#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/filter.h"
#include "report/query/gpu_busy.h"
#include "report/views/summary/hint.h"

namespace xpu {

// About the GPU that was idle the longest, the largest part of the elapsed time first. What comes
// before the steady state is paid once: the steady state is first where it is not too short.
std::vector<Hint> FindIdleHints(Analysis& analysis, const std::vector<GpuBusy>& gpus,
                                const FilterOptions& filter);

}  // namespace xpu
