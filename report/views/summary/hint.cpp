#include "report/views/summary/hint.h"

#include <algorithm>

#include "format/base/text.h"
#include "report/model/recorded_time.h"
#include "report/query/gpu_busy.h"

namespace xpu {

double ShareOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string ShareText(double share) {
  // Not "100 %" of something that was not all.
  if (share < 1 && share > 0.995) return "over 99 %";
  return share < 0.095 ? Format("{:.1f} %", 100 * share) : Format("{:.0f} %", 100 * share);
}

uint64_t ElapsedNs(const Analysis& analysis, const FilterOptions& filter) {
  uint64_t begin_ns = 0;
  uint64_t end_ns = RunTimeNs(analysis.model);
  if (end_ns == 0) end_ns = analysis.recorded_until_ns;
  begin_ns = std::min(filter.time.begin_ns, end_ns);
  end_ns = std::min(filter.time.end_ns, end_ns);
  const uint64_t start_ns = StartOf(analysis.model);
  const uint64_t all_ns = end_ns - begin_ns;
  const uint64_t uncounted_ns =
      PausedNs(UncountedTime(analysis), start_ns + begin_ns, start_ns + end_ns);
  return all_ns - std::min(all_ns, uncounted_ns);
}

}  // namespace xpu
