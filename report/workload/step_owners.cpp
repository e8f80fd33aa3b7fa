#include "report/workload/step_owners.h"

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

}  // namespace xpu
