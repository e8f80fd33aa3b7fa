// Views as text, of captures made by hand.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "report/analysis/analysis.h"
#include "report/base/output.h"
#include "report/views/view.h"

namespace xpu::test {

// What `write` gives to an output.
std::string Written(const std::function<void(Output&)>& write);

// The lines of --folded, by stack.
using Lines = std::map<std::string, uint64_t>;

// `notes` may be null.
Lines Folded(Analysis& analysis, const ViewOptions& options, std::string* notes = nullptr);

}  // namespace xpu::test
