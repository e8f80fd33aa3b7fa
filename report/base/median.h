// The middle one of some values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace xpu {

// Returns the upper one of the middle two of an even number. There must be one value at least.
// Changes the order.
template <typename T>
T MedianOf(std::vector<T>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace xpu
