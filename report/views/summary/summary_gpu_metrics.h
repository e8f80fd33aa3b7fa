// What the summary says about GPUs as a whole: clocks, power, hardware counters.
#pragma once

#include "report/analysis/analysis.h"
#include "report/views/summary/summary_text.h"

namespace xpu {

// Nothing where nothing was recorded.
void WriteGpuMetrics(const Analysis& analysis, SummaryText& text);

}  // namespace xpu
