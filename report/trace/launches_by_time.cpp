#include "report/trace/launches_by_time.h"

#include <algorithm>
#include <string_view>

namespace xpu {
namespace {

// The kind of work that a call starts. Those that wait for work are told by their names, as copies
// and sets are.
std::optional<WorkKind> KindStartedBy(const Launch& launch, std::string_view name) {
  switch (launch.kind) {
    case ApiKind::kKernelLaunch:
      return WorkKind::kKernel;
    case ApiKind::kGraphLaunch:
      return WorkKind::kGraph;
    case ApiKind::kOther:
      break;
  }
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("Memcpy")) return WorkKind::kMemcpy;
  if (has("Memset")) return WorkKind::kMemset;
  if (has("Synchronize") || has("WaitEvent")) return WorkKind::kSynchronization;
  return std::nullopt;
}

}  // namespace

LaunchesByTime::LaunchesByTime(std::span<const Launch> launches,
                               const std::unordered_map<InstanceId, CudaProcess>& processes,
                               const ApiNames& names) {
  for (const auto& [instance, process] : processes) pids_[instance] = process.pid;
  for (uint32_t i = 0; i < launches.size(); ++i) {
    const Launch& launch = launches[i];
    // A call that failed or was captured into a graph started nothing.
    if (launch.return_value != 0 || launch.graph_nodes > 0) continue;
    const std::string& name = ApiNameOf(names, launch);
    const auto kind = KindStartedBy(launch, name);
    if (kind)
      starts_[KeyOf(launch.instance, launch.pid, *kind)].push_back(
          {.time_ns = launch.start_ns,
           .end_ns = launch.end_ns,
           .launch = i,
           .starts_many = name.find("Batch") != std::string::npos});
  }
  for (auto& [key, starts] : starts_) {
    std::stable_sort(starts.begin(), starts.end(),
                     [](const Start& a, const Start& b) { return a.time_ns < b.time_ns; });
  }
}

LaunchesByTime::Key LaunchesByTime::KeyOf(InstanceId instance, uint32_t pid, WorkKind kind) const {
  return {pid, pid == 0 ? instance : InstanceId{}, kind};
}

// Before `end`. What is passed on the way is made shorter, as in a union-find.
std::optional<size_t> LaunchesByTime::LastFree(Starts& starts, size_t end) {
  size_t at = end;
  while (at > 0 && starts[at - 1].to_free > 0) {
    at -= std::min<size_t>(starts[at - 1].to_free, at);
  }
  for (size_t i = end; i > at;) {
    Start& passed = starts[i - 1];
    const size_t step = passed.to_free;
    passed.to_free = static_cast<uint32_t>(i - at);
    i -= std::min(step, i);
  }
  if (at == 0) return std::nullopt;
  return at - 1;
}

std::optional<uint32_t> LaunchesByTime::Take(const Work& work, uint64_t window_ns) {
  const auto pid = pids_.find(work.instance);
  const auto found =
      starts_.find(KeyOf(work.instance, pid == pids_.end() ? 0 : pid->second, work.kind));
  if (found == starts_.end()) return std::nullopt;
  Starts& starts = found->second;
  const auto later = std::partition_point(starts.begin(), starts.end(), [&](const Start& start) {
    return start.time_ns <= work.start_ns;
  });
  if (later == starts.begin()) return std::nullopt;
  Start& nearest = *(later - 1);
  const bool is_transfer = work.kind == WorkKind::kMemcpy || work.kind == WorkKind::kMemset;
  if (is_transfer && work.end_ns <= nearest.end_ns) {
    nearest.to_free = std::max(nearest.to_free, 1u);
    return nearest.launch;
  }
  const auto at = LastFree(starts, static_cast<size_t>(later - starts.begin()));
  if (!at || work.start_ns - starts[*at].time_ns > window_ns) return std::nullopt;
  if (!work.shares_launch && !starts[*at].starts_many) starts[*at].to_free = 1;
  return starts[*at].launch;
}

}  // namespace xpu
