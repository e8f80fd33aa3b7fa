// Whether two groups of numbers differ by more than their noise.
#pragma once

#include <span>

namespace xpu {

// Of a few numbers, such as one for each of several runs: Welch's t-test, two-sided, 5 %. Each
// group needs two numbers or more; with fewer nothing differs.
bool DifferByMeans(std::span<const double> a, std::span<const double> b);

// Of many numbers that have no normal distribution, such as durations of steps: the Mann-Whitney U
// test in its normal approximation, with the correction for ties, two-sided, 1 %.
bool DifferByRanks(std::span<const double> a, std::span<const double> b);

}  // namespace xpu
