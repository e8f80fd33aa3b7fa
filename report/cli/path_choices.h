// The values of --mode and --memory.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/query/merge.h"

namespace xpu {

inline std::vector<std::pair<std::string, MergeMode>> Modes() {
  return {{"merge", MergeMode::kMerge},  {"gpu", MergeMode::kGpu},
          {"cpu", MergeMode::kCpu},      {"idle", MergeMode::kIdle},
          {"probe", MergeMode::kProbe},  {"off", MergeMode::kOff},
          {"wall", MergeMode::kWall},    {"critical", MergeMode::kCritical},
          {"memory", MergeMode::kMemory}};
}

inline std::vector<std::pair<std::string, MemoryView>> MemoryViews() {
  return {
      {"peak", MemoryView::kPeak}, {"growth", MemoryView::kGrowth}, {"left", MemoryView::kLeft}};
}

}  // namespace xpu
