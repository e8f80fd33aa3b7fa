// What to look at next, computed from the capture.
#pragma once

#include <string>
#include <vector>

#include "report/analysis.h"
#include "report/gpu/gpu_busy.h"

namespace xpu {

struct Hint {
  std::string what;  // a sentence with the numbers that make it true
  std::string next;  // the command that shows more, without "xpu-report" and the capture
};

// At most four, the most telling first.
std::vector<Hint> FindHints(const Analysis& analysis, const std::vector<GpuBusy>& gpus);

}  // namespace xpu
