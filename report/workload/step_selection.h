// Some steps as the part of a capture that is shown: a filter, as those of analysis/filter.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/analysis/analysis.h"
#include "report/workload/steps.h"

namespace xpu {

// Steps by their numbers, from 0.
struct StepRange {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;  // included
};
// "37", "10-20", "100-", "-5". kUsage: it is none of these.
Result<StepRange> ParseStepRange(std::string_view text);

struct StepOptions {
  StepDefinition definition = {};
  std::optional<StepRange> range = {};  // none: all steps after the warm-up
};

// Keeps the steps of each series that have these numbers and lie within the time that is selected.
std::vector<StepSeries> ShownSteps(std::vector<StepSeries> all,
                                   const std::optional<StepRange>& range, const Selection& shown);

// Keeps of analysis.shown what belongs to these steps: what their process launches in them,
// whenever the GPU runs it, and what all processes do at the same time.
void SelectSteps(const std::vector<StepSeries>& wanted, Analysis& analysis);
// Does that for a range of all steps. kUsage: there are no such steps.
Status SelectSteps(const StepRange& range, const std::vector<StepSeries>& all, Analysis& analysis);

}  // namespace xpu
