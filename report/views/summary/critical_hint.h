// What would make steps shorter, for the advice of the summary.
#pragma once

#include <optional>

#include "report/views/summary/summary_hints.h"

namespace xpu {

// nullopt: there are no steps, they are a small part of the recording, or nothing stands out.
std::optional<Hint> FindCriticalHint(Analysis& analysis, const FilterOptions& filter);

}  // namespace xpu
