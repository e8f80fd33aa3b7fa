#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "format/base/saturated.h"
#include "report/analysis/overheads.h"
#include "report/base/median.h"
#include "report/base/sort_runs.h"
#include "report/model/clock_fit.h"
#include "report/ranks/collectives.h"

namespace xpu {
namespace {

// One collective that two hosts have: by how much the second one's clock was ahead.
struct Difference {
  uint64_t at_ns = 0;  // on the first one's clock
  double ahead_ns = 0;
};

struct Line {
  double ahead_ns = 0;
  double drift = 0;
  uint64_t at_ns = 0;
  uint64_t residual_ns = 0;
};

// Ranks leave these at once when the last data has come, whatever their place in the algorithm. The
// root of a broadcast is done earlier.
bool EndsTogether(const Collective& collective) {
  return !collective.is_grouped() && collective.agrees && IsMutual(collective.operation);
}

constexpr double kFarthestNs = 1e15;
constexpr double kFastest = 1e-3;  // no clock drifts more

// The median of the slopes between a point and the one half the recording later (Theil and Sen,
// with pairs that are far apart): a third of the points may be wrong.
Line Fit(std::vector<Difference> points) {
  std::sort(points.begin(), points.end(),
            [](const Difference& a, const Difference& b) { return a.at_ns < b.at_ns; });
  Line line;
  line.at_ns = points[points.size() / 2].at_ns;
  const auto since = [&](const Difference& point) {
    return static_cast<double>(static_cast<int64_t>(point.at_ns - line.at_ns));
  };
  std::vector<double> slopes;
  const size_t half = points.size() / 2;
  for (size_t i = 0; i + half < points.size() && half > 0; ++i) {
    const double ns = since(points[i + half]) - since(points[i]);
    if (ns > 0) slopes.push_back((points[i + half].ahead_ns - points[i].ahead_ns) / ns);
  }
  // The drift of a short recording is less than the noise of the ends.
  constexpr size_t kFewestPoints = 8;
  constexpr double kShortestNs = 1e9;
  const double span_ns = since(points.back()) - since(points.front());
  if (points.size() >= kFewestPoints && span_ns >= kShortestNs && !slopes.empty()) {
    line.drift = std::clamp(MedianOf(slopes), -kFastest, kFastest);
  }
  std::vector<double> rest;
  for (const Difference& point : points) rest.push_back(point.ahead_ns - line.drift * since(point));
  line.ahead_ns = MedianOf(rest);
  for (double& value : rest) value = std::abs(value - line.ahead_ns);
  line.residual_ns = ToSaturated(MedianOf(rest));
  return line;
}

// When the ranks of each host were done, on the median.
std::map<uint32_t, uint64_t> EndsByHost(const std::vector<uint32_t>& host_of,
                                        const Collective& collective) {
  std::map<uint32_t, std::vector<uint64_t>> ends;
  for (const CollectivePart& part : collective.parts) {
    if (part.has_times()) ends[host_of[part.rank]].push_back(part.end_ns);
  }
  std::map<uint32_t, uint64_t> medians;
  for (auto& [host, all] : ends) medians[host] = MedianOf(all);
  return medians;
}

// The kernels of NCCL of several captures, with the time that the wall clocks of their hosts give
// them.
struct HostKernels {
  RankCalls calls = {};
  std::vector<uint32_t> host_of = {};  // by rank, which is any number here
};

// The times of a long recording from which kernels are taken, the same ones for all ranks: some
// short times are enough.
struct Sampling {
  uint64_t from_ns = 0;
  uint64_t period_ns = 0;  // 0: all
  uint64_t length_ns = 0;  // of each period

  bool Has(uint64_t ns) const {
    return period_ns == 0 || (ns - std::min(ns, from_ns)) % period_ns < length_ns;
  }
};

Sampling SamplingOf(std::span<const CaptureOnClock> captures) {
  constexpr size_t kEnough = 16384;  // kernels of a capture
  constexpr uint64_t kTimes = 64;
  Sampling sampling{.from_ns = ~uint64_t{0}};
  uint64_t to_ns = 0;
  size_t most = 0;
  for (const CaptureOnClock& capture : captures) {
    const KernelList& kernels = capture.model->events.kernels;
    if (kernels.empty()) continue;
    const Clocks clocks(*capture.model);
    const auto time_of = [&](size_t i) {
      const ClockFit& clock = clocks.Of(kernels.Get<&Kernel::instance>(i));
      return clock.ToMonotonic(kernels.Get<&Kernel::start_ns>(i)) + capture.later_ns;
    };
    sampling.from_ns = std::min(sampling.from_ns, time_of(0));
    to_ns = std::max(to_ns, time_of(kernels.size() - 1));
    most = std::max(most, kernels.size());
  }
  if (most <= kEnough || to_ns <= sampling.from_ns) return {};
  sampling.period_ns = (to_ns - sampling.from_ns) / kTimes + 1;
  sampling.length_ns = sampling.period_ns / (most / kEnough + 1) + 1;
  return sampling;
}

void AddKernels(const CaptureOnClock& capture, const Sampling& sampling,
                std::map<CallKind, uint32_t>& kinds, HostKernels& found) {
  const Model& model = *capture.model;
  const Clocks clocks(model);
  std::map<StringId, uint32_t> kind_of;  // CollectivePart::kNone: of no use here
  std::map<InstanceId, uint32_t> ranks;
  const KernelList& kernels = model.events.kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const ClockFit& clock = clocks.Of(kernels.Get<&Kernel::instance>(i));
    const uint64_t start_ns =
        clock.ToMonotonic(kernels.Get<&Kernel::start_ns>(i)) + capture.later_ns;
    if (!sampling.Has(start_ns)) continue;
    const Kernel kernel = kernels[i];
    const auto [kind, is_new] = kind_of.try_emplace(kernel.name, CollectivePart::kNone);
    if (is_new) {
      const std::string_view name = model.Text(kernel.name);
      const std::string_view operation = OperationOfKernel(name);
      if (IsNcclKernel(name) && IsMutual(operation)) {
        const auto next = static_cast<uint32_t>(kinds.size());
        kind->second = kinds.try_emplace({std::string(operation), "", 0, name}, next).first->second;
      }
    }
    if (kind->second == CollectivePart::kNone || !IsTimed(kernel)) continue;
    const auto next = static_cast<uint32_t>(found.host_of.size());
    const auto [rank, is_first] = ranks.try_emplace(kernel.instance, next);
    if (is_first) found.host_of.push_back(static_cast<uint32_t>(capture.host));
    RankCall& call = found.calls.calls.emplace_back();
    call.match = CollectiveMatch::kByOrder;
    call.kind = kind->second;
    call.communicator = kernel.stream_id;
    call.part.rank = rank->second;
    call.part.gpu = kernel.device_id;
    call.part.arrived_ns = start_ns;
    call.part.end_ns = clock.ToMonotonic(kernel.end_ns) + capture.later_ns;
    call.part.called_ns = call.part.arrived_ns;
  }
}

HostKernels KernelsOf(std::span<const CaptureOnClock> captures) {
  HostKernels found;
  std::map<CallKind, uint32_t> kinds;
  const Sampling sampling = SamplingOf(captures);
  for (const CaptureOnClock& capture : captures) AddKernels(capture, sampling, kinds, found);
  found.calls.kinds.resize(kinds.size());
  for (const auto& [kind, number] : kinds) found.calls.kinds[number] = kind;
  SortRuns(found.calls.calls, [](const RankCall& a, const RankCall& b) {
    return a.part.arrived_ns < b.part.arrived_ns;
  });
  return found;
}

}  // namespace

std::vector<HostClock> RefineHostClocks(std::span<const CaptureOnClock> captures,
                                        std::vector<HostClock> clocks) {
  const HostKernels kernels = KernelsOf(captures);
  const Collectives collectives = MatchCalls(kernels.calls, kernels.host_of, clocks);
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Difference>> differences;
  for (const Collective& collective : collectives.all) {
    if (!EndsTogether(collective)) continue;
    const std::map<uint32_t, uint64_t> ends = EndsByHost(kernels.host_of, collective);
    const auto add = [&](const auto& a, const auto& b) {
      const double ahead_ns = static_cast<double>(static_cast<int64_t>(b.second - a.second));
      if (std::abs(ahead_ns) > kFarthestNs) return;  // no clock is so wrong: the capture is damaged
      differences[{a.first, b.first}].push_back({a.second, ahead_ns});
    };
    // With the first one, which most have in common, and the one before: there may be hundreds.
    for (auto b = ends.begin(); b != ends.end(); ++b) {
      if (b == ends.begin()) continue;
      add(*ends.begin(), *b);
      if (std::prev(b) != ends.begin()) add(*std::prev(b), *b);
    }
  }
  // From the first host on, each by the host with which it has the most in common.
  std::vector<bool> is_known(clocks.size());
  is_known[0] = true;
  while (true) {
    const std::vector<Difference>* best = nullptr;
    std::pair<uint32_t, uint32_t> pair;
    for (const auto& [hosts, points] : differences) {
      if (hosts.second >= clocks.size() || is_known[hosts.first] == is_known[hosts.second])
        continue;
      if (best != nullptr && points.size() <= best->size()) continue;
      best = &points;
      pair = hosts;
    }
    if (best == nullptr) break;
    const bool is_second_known = is_known[pair.second];
    const HostClock& known = clocks[is_second_known ? pair.second : pair.first];
    HostClock& clock = clocks[is_second_known ? pair.first : pair.second];
    const Line line = Fit(*best);
    const double sign = is_second_known ? -1 : 1;
    clock.at_ns = line.at_ns;
    const auto known_drift = static_cast<double>(static_cast<int64_t>(line.at_ns - known.at_ns));
    clock.drift = sign * line.drift + known.drift;
    clock.ahead_ns = static_cast<int64_t>(sign * line.ahead_ns) + known.ahead_ns +
                     static_cast<int64_t>(known.drift * known_drift);
    clock.residual_ns = std::max(line.residual_ns, known.residual_ns);
    clock.collectives = best->size();
    is_known[&clock - clocks.data()] = true;
  }
  return clocks;
}

}  // namespace xpu
