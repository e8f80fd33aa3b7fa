// `--sample 1/N`: a part of a capture that stands for all of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/result.h"
#include "report/analysis/analysis.h"

namespace xpu {

// N of "1/N".
Result<uint64_t> ParseSampleRate(std::string_view text);

// Keeps one of each `rate` CPU samples, and one of each `rate` calls with all of the GPU work that
// it started; of GPU work without a call likewise. Which one of N neighbours is left to chance, so
// that programs that repeat themselves after N steps are seen as a whole; but it is the same one
// each time. Sets Analysis::kept_of, by which views multiply counts and totals. The counts of the
// correlation stay those of the whole capture. Returns a line for standard error.
std::string ThinOut(uint64_t rate, Analysis& analysis);

}  // namespace xpu
