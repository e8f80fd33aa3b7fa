// What the summary says of steps.
#pragma once

#include <vector>

#include "report/analysis/analysis.h"
#include "report/views/summary/summary_text.h"
#include "report/workload/steps.h"

namespace xpu {

// Returns whether slow steps were worth a line, and so a look. Nothing is written of few or
// irregular steps, nor of a part of a capture.
bool WriteSteps(Analysis& analysis, const StepDefinition& definition, std::vector<StepSeries> all,
                SummaryText& text);

}  // namespace xpu
