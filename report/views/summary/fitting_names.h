// The names of a few rows in the space that a line of the summary has for them.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace xpu {

// Each name within `width` columns, and, where others look the same then but are not, more of it
// for a line of its own; empty: it needs none.
using FittingNames = std::vector<std::pair<std::string, std::string>>;
using FitNames = FittingNames (*)(const std::vector<std::string>& names, size_t width);

// Any text, cut in its middle.
FittingNames FitTexts(const std::vector<std::string>& names, size_t width);
// Demangled names of kernels, as CompactKernelName has them.
FittingNames FitKernels(const std::vector<std::string>& names, size_t width);

}  // namespace xpu
