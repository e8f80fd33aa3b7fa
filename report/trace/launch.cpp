#include "report/trace/launch.h"

namespace xpu {

LaunchFate FateOf(const Launch& launch) {
  if (launch.kind == ApiKind::kOther) return LaunchFate::kNoLaunch;
  if (launch.work_count > 0) return LaunchFate::kMatched;
  if (launch.return_value != 0) return LaunchFate::kFailed;
  if (launch.probe != 0) return LaunchFate::kProbed;
  return launch.graph_nodes > 0 ? LaunchFate::kCaptured : LaunchFate::kUnmatched;
}

ApiNameId ApiNameIdOf(const ApiNames& names, const Launch& launch) {
  return launch.probe != 0 ? names.OfProbe(launch.probe)
                           : names.Of(launch.instance, launch.domain, launch.callback_id);
}

const std::string& ApiNameOf(const ApiNames& names, const Launch& launch) {
  return names.Text(ApiNameIdOf(names, launch));
}

}  // namespace xpu
