#include "report/query/last_place.h"

#include <utility>

namespace xpu {

std::string LastPlaceOf(const Analysis& analysis, CallPaths& paths, ReadablePaths& readable,
                        uint32_t pid, uint32_t tid) {
  std::pair<bool, uint64_t> last;  // has Python functions, time
  PathId path;
  const auto see = [&](const auto& event, uint64_t time_ns, auto path_of) {
    const std::pair<bool, uint64_t> seen(event.python_stack.value != 0, time_ns);
    if (event.pid != pid || event.tid != tid || seen < last) return;
    last = seen;
    path = path_of();
  };
  for (const Owned<CpuSample>& sample : analysis.model.events.cpu_samples) {
    see(sample, sample.time_ns, [&] { return paths.Of(sample); });
  }
  for (const Owned<OffCpuWait>& wait : analysis.model.events.off_cpu_waits) {
    see(wait, wait.end_ns, [&] { return paths.OfWait(wait); });
  }
  for (const Launch& launch : analysis.correlation.launches) {
    see(launch, launch.start_ns, [&] { return paths.OfLaunch(launch); });
  }
  return path ? readable.OwnFunctions(path) : "unknown code";
}

}  // namespace xpu
