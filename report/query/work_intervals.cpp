#include "report/query/work_intervals.h"

#include <algorithm>
#include <tuple>

namespace xpu {

void WorkIntervals::Sort() {
  std::sort(all_.begin(), all_.end(), [](const Interval& a, const Interval& b) {
    return std::tie(a.start_ns, a.index) < std::tie(b.start_ns, b.index);
  });
  end_so_far_.reserve(all_.size());
  uint64_t end_ns = 0;
  for (const Interval& interval : all_) {
    end_ns = std::max(end_ns, interval.end_ns);
    end_so_far_.push_back(end_ns);
  }
}

std::span<const WorkIntervals::Interval> WorkIntervals::Around(uint64_t start_ns,
                                                               uint64_t end_ns) const {
  const auto first = std::upper_bound(end_so_far_.begin(), end_so_far_.end(), start_ns);
  const auto last =
      std::lower_bound(all_.begin(), all_.end(), end_ns,
                       [](const Interval& a, uint64_t time_ns) { return a.start_ns < time_ns; });
  const auto begin = static_cast<size_t>(first - end_so_far_.begin());
  const auto end = static_cast<size_t>(last - all_.begin());
  return begin < end ? std::span(all_).subspan(begin, end - begin) : std::span<const Interval>();
}

}  // namespace xpu
