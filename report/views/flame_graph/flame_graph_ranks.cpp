#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/ranks/rank_sums.h"
#include "report/views/flame_graph/flame_graph_strip.h"

namespace xpu {
namespace {

// More have no room.
constexpr size_t kMostRanks = 64;
constexpr size_t kMostMapBars = 500;
constexpr uint64_t kMapParts = 240;  // of a time without steps

// When a rank came late, and how long others waited for it then.
struct Lateness {
  uint64_t time_ns = 0;
  uint64_t waited_ns = 0;
};

// `each` steps are a bar; without steps the bars are equal parts of the time.
std::vector<StripLane::Bar> BarsOf(const StepSeries* series, uint32_t each,
                                   const FlameStrip& strip) {
  std::vector<StripLane::Bar> bars;
  if (series == nullptr) {
    const uint64_t length_ns = std::max<uint64_t>((strip.to_ns - strip.from_ns) / kMapParts, 1);
    for (uint64_t ns = strip.from_ns; ns < strip.to_ns; ns += length_ns) {
      bars.push_back({ns, ns + length_ns});
    }
    return bars;
  }
  const std::vector<Step>& steps = series->steps;
  each = std::max(each, static_cast<uint32_t>(steps.size() / kMostMapBars + 1));
  for (size_t i = 0; i < steps.size(); i += each) {
    const size_t last = std::min(i + each, steps.size()) - 1;
    bars.push_back({steps[i].start_ns, steps[last].end_ns});
  }
  return bars;
}

// The waiting counts for the last bar that begins before the late kernel was launched.
void AddValues(const std::vector<Lateness>& all, StripLane& lane) {
  lane.values.assign(lane.bars.size(), 0);
  for (const Lateness& one : all) {
    const auto after = std::partition_point(
        lane.bars.begin(), lane.bars.end(),
        [&](const StripLane::Bar& bar) { return bar.start_ns <= one.time_ns; });
    if (after == lane.bars.begin()) continue;
    lane.values[static_cast<size_t>(after - lane.bars.begin()) - 1] +=
        static_cast<double>(one.waited_ns);
  }
}

}  // namespace

void AddRankLanes(const Analysis& analysis, const std::vector<StepSeries>& steps,
                  std::optional<FlameStrip>& strip) {
  std::map<uint32_t, std::vector<Lateness>> late;  // by rank
  uint64_t from_ns = ~uint64_t{0};
  uint64_t to_ns = 0;
  const std::shared_ptr<const Collectives> collectives = ShownCollectives(analysis);
  for (const Collective& collective : collectives->all) {
    for (const CollectivePart& part : collective.parts) late.try_emplace(part.rank);
    if (collective.arrived == 0) continue;
    from_ns = std::min(from_ns, collective.first_arrival_ns);
    to_ns = std::max(to_ns, collective.end_ns);
    const CollectivePart& last = collective.parts[collective.awaited];
    const uint64_t waited_ns = collective.waited_ns();
    if (waited_ns > 0) late[last.rank].push_back({last.called_ns, waited_ns});
  }
  if (late.size() < 2 || to_ns <= from_ns) return;
  if (!strip) strip = FlameStrip{.from_ns = from_ns, .to_ns = to_ns, .lanes = {}};
  std::map<uint32_t, const StepSeries*> series_of;  // by process
  for (const StepSeries& series : steps) series_of.try_emplace(series.thread.pid, &series);
  double top = 1;
  std::vector<StripLane> lanes;
  for (const auto& [rank, times] : late) {
    if (lanes.size() == kMostRanks) break;
    const JobRank& of = analysis.job.ranks()[rank];
    const auto series = series_of.find(of.pid);
    StripLane& lane = lanes.emplace_back();
    lane.name = Format("rank{} awaited", of.number);
    lane.is_heat = true;
    lane.bars = BarsOf(series == series_of.end() ? nullptr : series->second, strip->each, *strip);
    AddValues(times, lane);
    for (const double value : lane.values) top = std::max(top, value);
  }
  for (StripLane& lane : lanes) {
    lane.top = top;
    strip->lanes.push_back(std::move(lane));
  }
}

}  // namespace xpu
