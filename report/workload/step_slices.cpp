#include "report/workload/step_slices.h"

#include <algorithm>
#include <utility>

#include "report/workload/step_owners.h"

namespace xpu {

SlicedTimes SliceBySteps(const Analysis& analysis, const std::vector<StepSeries>& all) {
  std::vector<TimeSlices> slices;
  size_t most = 0;
  for (const StepSeries& series : all) {
    TimeSlices& own = slices.emplace_back();
    for (size_t i = 0; i < series.steps.size(); ++i) {
      own.push_back({series.steps[i].start_ns, series.steps[i].end_ns, static_cast<uint32_t>(i)});
    }
    most = std::max(most, own.size());
  }
  return {std::move(slices), FindStepOwners(analysis, all), static_cast<uint32_t>(most)};
}

}  // namespace xpu
