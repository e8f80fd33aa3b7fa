#include "report/workload/step_slices.h"

#include <algorithm>
#include <utility>

namespace xpu {
namespace {

// A damaged capture may name a process among its own ancestors.
constexpr size_t kMostAncestors = 64;

}  // namespace

std::map<uint32_t, size_t> FindStepOwners(const Analysis& analysis,
                                          const std::vector<StepSeries>& all) {
  std::map<uint32_t, size_t> own;
  for (size_t i = 0; i < all.size(); ++i) own.try_emplace(all[i].thread.pid, i);
  std::map<uint32_t, size_t> found = own;
  const ProcessHistory& processes = analysis.processes;
  for (uint32_t id = 1; id <= processes.size(); ++id) {
    ProcessId at{id};
    for (size_t depth = 0; at && depth < kMostAncestors; ++depth) {
      if (const auto owner = own.find(processes[at].pid); owner != own.end()) {
        found.try_emplace(processes[ProcessId{id}].pid, owner->second);
        break;
      }
      at = processes[at].parent;
    }
  }
  return found;
}

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
