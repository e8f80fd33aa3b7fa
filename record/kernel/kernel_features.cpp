#include "record/kernel/kernel_features.h"

#include <array>

#include "format/base/split.h"

namespace xpu {
namespace {

constexpr std::array<std::string_view, 8> kNames = {
    "build_id_records", "table_walk",   "lost_count",     "map_tree",
    "peer_pidfd",       "uprobe_multi", "uprobe_session", "scheduler_exit",
};

uint32_t left_out = 0;  // a bit for each feature

}  // namespace

bool MayUse(KernelFeature feature) { return (left_out >> static_cast<uint32_t>(feature) & 1) == 0; }

void LeaveOutFeatures(std::string_view names) {
  left_out = 0;
  for (const std::string_view name : Split(names, ",")) {
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (kNames[i] == name) left_out |= 1U << i;
    }
  }
}

}  // namespace xpu
