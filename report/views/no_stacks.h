// Why a view of stacks has none.
#pragma once

#include <string>

#include "report/analysis/analysis.h"
#include "report/query/merge.h"

namespace xpu {

// A sentence and which mode shows something, for standard error. Empty when the capture is.
std::string WhyNoStacks(const Analysis& analysis, MergeMode mode);

}  // namespace xpu
