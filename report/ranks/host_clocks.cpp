#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "format/base/saturated.h"
#include "report/base/median.h"
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
std::map<uint32_t, uint64_t> EndsByHost(const Trace& trace, const Collective& collective) {
  std::map<uint32_t, std::vector<uint64_t>> ends;
  for (const CollectivePart& part : collective.parts) {
    if (part.has_times()) ends[trace.job.ranks()[part.rank].host].push_back(part.end_ns);
  }
  std::map<uint32_t, uint64_t> medians;
  for (auto& [host, all] : ends) medians[host] = MedianOf(all);
  return medians;
}

}  // namespace

std::vector<HostClock> RefineHostClocks(const Trace& trace, const Collectives& collectives) {
  std::vector<HostClock> clocks = trace.model.host_clocks;
  if (clocks.size() < 2) return {};
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Difference>> differences;
  for (const Collective& collective : collectives.all) {
    if (!EndsTogether(collective)) continue;
    const std::map<uint32_t, uint64_t> ends = EndsByHost(trace, collective);
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
  bool is_any = false;
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
    is_any = true;
  }
  if (!is_any) return {};
  return clocks;
}

}  // namespace xpu
