#include "report/trace/calls_by_thread.h"

#include <algorithm>
#include <tuple>

namespace xpu {

CallsByThread::CallsByThread(std::span<const Launch> launches) : launches_(launches) {
  for (uint32_t i = 0; i < launches.size(); ++i) {
    if (launches[i].has_call) calls_[{launches[i].pid, launches[i].tid}].push_back(i);
  }
  for (auto& [thread, calls] : calls_) {
    std::sort(calls.begin(), calls.end(), [&](uint32_t a, uint32_t b) {
      return std::tuple(launches[a].start_ns, a) < std::tuple(launches[b].start_ns, b);
    });
  }
}

std::optional<uint32_t> CallsByThread::Find(const Moment& moment) const {
  const auto found = calls_.find({moment.pid, moment.tid});
  if (found == calls_.end()) return std::nullopt;
  const auto next =
      std::partition_point(found->second.begin(), found->second.end(),
                           [&](uint32_t i) { return launches_[i].start_ns <= moment.start_ns; });
  if (next != found->second.begin() && moment.start_ns <= launches_[*(next - 1)].end_ns) {
    return *(next - 1);
  }
  if (next == found->second.end()) return std::nullopt;
  const uint64_t start_ns = launches_[*next].start_ns;
  const bool holds =
      moment.end_ns ? start_ns <= *moment.end_ns : start_ns - moment.start_ns < kToleranceNs;
  if (!holds || start_ns >= moment.next_start_ns) return std::nullopt;
  return *next;
}

}  // namespace xpu
