#include "report/trace/launch.h"

namespace xpu {

LaunchStatus LaunchStatusOf(const Launch& launch) {
  if (launch.kind == ApiKind::kOther) return LaunchStatus::kNoLaunch;
  if (launch.work_count > 0) return LaunchStatus::kMatched;
  if (launch.return_value != 0) return LaunchStatus::kFailed;
  if (launch.probe != 0) return LaunchStatus::kProbed;
  return launch.graph_nodes > 0 ? LaunchStatus::kCaptured : LaunchStatus::kUnmatched;
}

}  // namespace xpu
