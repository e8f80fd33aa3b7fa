#include "record/kernel/kernel_features.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace xpu {
namespace {

constexpr std::array<std::string_view, 7> kNames = {
    "build_id_records", "table_walk",   "lost_count",     "map_tree",
    "peer_pidfd",       "uprobe_multi", "uprobe_session",
};

}  // namespace

bool MayUse(KernelFeature feature) { return MayUse(feature, std::getenv("XPU_TEST_WITHOUT")); }

bool MayUse(KernelFeature feature, const char* left_out) {
  std::string_view rest = left_out == nullptr ? "" : left_out;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    if (rest.substr(0, end) == kNames.at(static_cast<size_t>(feature))) return false;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return true;
}

}  // namespace xpu
