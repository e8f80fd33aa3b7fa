// Integers in a coarser unit whose sum is the rounded exact sum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace xpu {

// Each value divided by `unit`, rounded down, then one more for those with the largest remainders
// (of equal ones the first) until the sum is the exact sum divided by `unit`, rounded half up.
// `unit` is not 0.
std::vector<uint64_t> RoundToUnit(std::span<const uint64_t> values, uint64_t unit);

}  // namespace xpu
