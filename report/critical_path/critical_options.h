// Options of the critical path: for which steps, and what if something were faster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "format/base/result.h"
#include "report/workload/step_selection.h"
#include "report/workload/steps.h"

namespace xpu {

// Scales the time of some code, work or thread by a factor.
struct Speedup {
  enum class Kind : uint8_t { kKernel, kFunction, kThread };
  Kind kind = Kind::kKernel;
  std::string pattern;  // POSIX extended regular expression
  double factor = 0;
};
// "kernel:REGEX=FACTOR", "function:REGEX=FACTOR", "thread:REGEX=FACTOR". kUsage: it is neither.
Result<Speedup> ParseSpeedup(std::string_view text);
// "kernel:softmax", without the factor.
std::string SpeedupText(const Speedup& speedup);

}  // namespace xpu
