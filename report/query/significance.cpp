#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "report/query/statistics.h"

namespace xpu {
namespace {

struct Moments {
  double mean = 0;
  double variance_of_mean = 0;
};

Moments MomentsOf(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  Moments moments;
  for (const double value : values) moments.mean += value / count;
  for (const double value : values) {
    const double off = value - moments.mean;
    moments.variance_of_mean += off * off / (count - 1) / count;
  }
  return moments;
}

// The value of Student's t distribution that 5 % lie beyond, on both sides together.
double CriticalT(double degrees_of_freedom) {
  constexpr std::array<double, 30> kCritical = {
      12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
      2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
      2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  const double whole = std::max(1.0, std::floor(degrees_of_freedom));
  const bool is_small = whole <= static_cast<double>(kCritical.size());
  return is_small ? kCritical[static_cast<size_t>(whole) - 1] : kCritical.back();
}

}  // namespace

bool DifferByMeans(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2) return false;
  const Moments of_a = MomentsOf(a);
  const Moments of_b = MomentsOf(b);
  const double variance = of_a.variance_of_mean + of_b.variance_of_mean;
  const double difference = std::abs(of_a.mean - of_b.mean);
  if (variance == 0) return difference > 0;
  const auto part = [](double variance_of_mean, size_t count) {
    return variance_of_mean * variance_of_mean / static_cast<double>(count - 1);
  };
  const double degrees_of_freedom =
      variance * variance /
      (part(of_a.variance_of_mean, a.size()) + part(of_b.variance_of_mean, b.size()));
  return difference / std::sqrt(variance) > CriticalT(degrees_of_freedom);
}

bool DifferByRanks(std::span<const double> a, std::span<const double> b) {
  constexpr double kCritical = 2.5758;       // of the normal distribution
  std::vector<std::pair<double, bool>> all;  // and whether it is one of `a`
  for (const double value : a) all.emplace_back(value, true);
  for (const double value : b) all.emplace_back(value, false);
  std::sort(all.begin(), all.end());
  const auto count_a = static_cast<double>(a.size());
  const auto count_b = static_cast<double>(b.size());
  const double count = count_a + count_b;
  double rank_sum = 0;
  double ties = 0;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    double of_a = 0;
    while (end < all.size() && all[end].first == all[begin].first)
      of_a += all[end++].second ? 1 : 0;
    const auto same = static_cast<double>(end - begin);
    rank_sum += of_a * (static_cast<double>(begin) + (same + 1) / 2);
    ties += same * same * same - same;
    begin = end;
  }
  const double u = rank_sum - count_a * (count_a + 1) / 2;
  const double variance =
      count_a * count_b / 12 * (count + 1 - ties / std::max(1.0, count * (count - 1)));
  return variance > 0 && std::abs(u - count_a * count_b / 2) > kCritical * std::sqrt(variance);
}

}  // namespace xpu
