// One line of what to look at next, and the numbers of its words.
#pragma once

#include <cstdint>
#include <string>

#include "report/analysis/analysis.h"
#include "report/analysis/filter.h"

namespace xpu {

struct Hint {
  std::string what;       // a sentence with the numbers that make it true
  std::string next;       // the command that shows more, without "xpu-report", filters and capture
  std::string time = {};  // for --time, where the command is about a part; empty: it is about all
};

// Less than this part of the elapsed time is not worth advice.
inline constexpr double kNegligible = 0.02;

// "5 %", "0.3 %", "over 99 %"
std::string ShareText(double share);
double ShareOf(uint64_t part, uint64_t whole);

// How long the recording lasted, or the part of it that the filter shows.
uint64_t ElapsedNs(const Analysis& analysis, const FilterOptions& filter);

}  // namespace xpu
