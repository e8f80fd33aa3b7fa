#include "report/query/largest_remainder.h"

#include <algorithm>

#include "format/base/check.h"

namespace xpu {

__extension__ using Wide = unsigned __int128;

std::vector<uint64_t> RoundToUnit(std::span<const uint64_t> values, uint64_t unit) {
  XPU_CHECK(unit != 0);
  std::vector<uint64_t> rounded;
  std::vector<size_t> with_remainder;
  rounded.reserve(values.size());
  Wide exact = 0;
  Wide given = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    rounded.push_back(values[i] / unit);
    exact += values[i];
    given += rounded.back();
    if (values[i] % unit != 0) with_remainder.push_back(i);
  }
  const Wide total = exact / unit + (exact % unit >= unit - unit / 2 ? 1 : 0);
  const auto missing = static_cast<size_t>(total - given);
  XPU_CHECK(missing <= with_remainder.size());
  const auto last = with_remainder.begin() + static_cast<ptrdiff_t>(missing);
  std::partial_sort(with_remainder.begin(), last, with_remainder.end(), [&](size_t a, size_t b) {
    const uint64_t remainder_a = values[a] % unit;
    const uint64_t remainder_b = values[b] % unit;
    return remainder_a != remainder_b ? remainder_a > remainder_b : a < b;
  });
  for (auto i = with_remainder.begin(); i != last; ++i) ++rounded[*i];
  return rounded;
}

}  // namespace xpu
