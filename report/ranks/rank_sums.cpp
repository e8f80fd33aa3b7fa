#include "report/ranks/rank_sums.h"

#include <algorithm>
#include <map>
#include <set>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/base/text.h"
#include "report/query/own_lines.h"
#include "report/query/readable_paths.h"
#include "report/query/statistics.h"
#include "report/workload/step_selection.h"

namespace xpu {
namespace {

// Less than this part of the time of all ranks is no finding, nor is what happened only now and
// then.
constexpr double kLeastShare = 0.02;
constexpr uint64_t kLeastTimes = 3;
// A second rank is named if others waited for it at least this part of the time that they waited
// for the first.
constexpr double kMuchOfFirst = 0.25;

uint64_t MedianStepNs(const StepSeries& series) {
  std::vector<uint64_t> durations;
  for (size_t i = series.warm_up; i < series.steps.size(); ++i) {
    durations.push_back(series.steps[i].end_ns - series.steps[i].start_ns);
  }
  std::sort(durations.begin(), durations.end());
  return durations.empty() ? 0 : Percentile(durations, 50);
}

// When each rank took part, over all of its streams.
std::map<CollectivePart::Member, Interval> Presence(const Collectives& collectives) {
  std::map<CollectivePart::Member, Interval> found;
  for (const Collective& collective : collectives.all) {
    for (const CollectivePart& part : collective.parts) {
      if (!part.has_times()) continue;
      Interval& of =
          found.try_emplace(part.member(), Interval{part.arrived_ns, part.end_ns}).first->second;
      of.start_ns = std::min(of.start_ns, part.arrived_ns);
      of.end_ns = std::max(of.end_ns, part.end_ns);
    }
  }
  return found;
}

class LateText {
 public:
  explicit LateText(Analysis& analysis)
      : analysis_(analysis), paths_(analysis, {}), readable_(analysis, paths_.tree()) {}

  std::string Make() {
    const std::shared_ptr<const Collectives> shown = ShownCollectives(analysis_);
    const Collectives& collectives = *shown;
    const auto time_ns = static_cast<double>(TimeOfRanksNs(collectives));
    std::string text;
    uint64_t first_ns = 0;
    std::set<CollectivePart::Member> named;
    for (const Straggler& one : FindStragglers(analysis_, collectives, paths_)) {
      const auto waited_ns = static_cast<double>(one.waited_ns);
      if (waited_ns < kLeastShare * time_ns || named.size() == 2) break;
      if (one.cause == LateCause::kUnknown || one.count < kLeastTimes) continue;
      if (waited_ns < kMuchOfFirst * static_cast<double>(first_ns)) break;
      if (!named.insert({one.rank, one.gpu}).second) continue;
      first_ns = std::max(first_ns, one.waited_ns);
      AppendFormat(text,
                   "{}ank {}{} came late to {} collectives: the other ranks waited {} for it "
                   "({:.0f} % of the time of all), while {}",
                   text.empty() ? "R" : "; r", analysis_.job.ranks()[one.rank].number,
                   collectives.DrivesSeveral(one.rank) ? Format(" (GPU {})", one.gpu) : "",
                   WithThousands(one.count), HumanDuration(one.waited_ns),
                   100 * waited_ns / time_ns, DoingText(one));
    }
    return text.empty() ? text : text + ".";
  }

 private:
  std::string DoingText(const Straggler& one) {
    const std::vector<FrameId> path = paths_.tree().Path(one.path);
    std::string place = readable_.OwnFunctions(one.path);
    // "train.py:decode_images > train.py:spin:6"
    const std::string line = OwnLines(analysis_).Of(path, one.python_stacks);
    const size_t number = line.rfind(':');
    if (number != std::string::npos && place.ends_with(line.substr(0, number))) {
      place += line.substr(number);
    }
    if (one.cause == LateCause::kNotRunning) return "it did not run, in " + place;
    if (one.cause == LateCause::kCpu) return "it was in " + place;
    return Format("its GPU ran {}, launched in {}", LabelOf(path.back()), place);
  }
  // The name of the kernel alone.
  std::string LabelOf(FrameId frame) const {
    constexpr std::string_view kKernel = "[GPU_Kernel]";
    std::string label = analysis_.frames[frame].Label();
    return label.starts_with(kKernel) ? label.substr(kKernel.size()) : label;
  }

  Analysis& analysis_;
  CallPaths paths_;
  ReadablePaths readable_;
};

}  // namespace

std::vector<RankSum> FindRankSums(Analysis& analysis, const std::vector<GpuBusy>& busy,
                                  const StepDefinition& steps) {
  std::map<uint32_t, RankSum> sums;
  std::map<uint32_t, std::set<uint32_t>> gpus;
  std::set<uint32_t> shown;
  const std::shared_ptr<const Collectives> collectives = ShownCollectives(analysis);
  for (const Collective& collective : collectives->all) {
    for (const CollectivePart& part : collective.parts) {
      if (IsShown(analysis, part)) shown.insert(part.rank);
      RankSum& of = sums[part.rank];
      of.waited_ns = AddSaturated(of.waited_ns, part.waited_ns);
      if (part.has_times()) gpus[part.rank].insert(part.gpu);
    }
    if (collective.arrived == 0) continue;
    RankSum& last = sums[collective.parts[collective.awaited].rank];
    last.awaited_ns = AddSaturated(last.awaited_ns, collective.waited_ns());
  }
  if (sums.empty()) return {};
  for (const Communication& row : FindCommunication(analysis, steps, false)) {
    sums[row.rank].communication = row;
  }
  std::map<uint32_t, uint64_t> medians;  // by process; its first series is that of its rank
  for (const StepSeries& series : ShownSteps(FindSteps(analysis, steps), {}, analysis.shown)) {
    medians.try_emplace(series.thread.pid, MedianStepNs(series));
  }
  std::vector<RankSum> rows;
  for (auto& [rank, sum] : sums) {
    if (!shown.contains(rank)) continue;  // others of its collectives are
    sum.rank = rank;
    const auto median = medians.find(analysis.job.ranks()[rank].pid);
    if (median != medians.end()) sum.step_ns = median->second;
    for (const GpuBusy& gpu : busy) {
      if (!gpus[rank].contains(gpu.gpu)) continue;
      sum.busy_ns = AddSaturated(sum.busy_ns, gpu.busy_ns);
      sum.active_ns = AddSaturated(sum.active_ns, gpu.active_ns());
    }
    rows.push_back(sum);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const RankSum& a, const RankSum& b) { return a.awaited_ns > b.awaited_ns; });
  return rows;
}

uint64_t TimeOfRanksNs(const Collectives& collectives) {
  uint64_t ns = 0;
  for (const auto& [member, present] : Presence(collectives)) {
    ns = AddSaturated(ns, present.end_ns - present.start_ns);
  }
  return ns;
}

bool AreImpossible(const Collectives& collectives) {
  std::map<CollectivePart::Member, std::map<std::pair<CollectiveMatch, uint64_t>, uint64_t>> waits;
  for (const Collective& collective : collectives.all) {
    for (const CollectivePart& part : collective.parts) {
      uint64_t& ns = waits[part.member()][{collective.match, collective.communicator}];
      ns = AddSaturated(ns, part.waited_ns);
    }
  }
  // Kernels of one communicator run one after the other.
  const auto present = Presence(collectives);
  return std::any_of(present.begin(), present.end(), [&](const auto& member) {
    const uint64_t ns = member.second.end_ns - member.second.start_ns;
    return std::any_of(waits[member.first].begin(), waits[member.first].end(),
                       [ns](const auto& of) { return of.second > ns; });
  });
}

std::string LateRanksText(Analysis& analysis) {
  if (CollectivesOf(analysis).all.empty()) return {};
  return LateText(analysis).Make();
}

}  // namespace xpu
