#include "report/workload/step_selection.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "format/base/number.h"
#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/filter.h"
#include "report/base/intervals.h"
#include "report/model/recorded_time.h"
#include "report/workload/step_slices.h"

namespace xpu {
namespace {

// Steps that are copied for GPUs of several processes with steps of their own; the steps of all
// stand for what more a hostile capture has: as many GPUs as steps, each with another process.
constexpr size_t kFewSteps = size_t{1} << 20;

// The times that steps take up; disjoint.
using Windows = std::vector<Interval>;

class StepFilter {
 public:
  using SharedPauses = Selection::SharedPauses;

  StepFilter(const Analysis& analysis, const std::vector<StepSeries>& wanted)
      : analysis_(analysis), wanted_(wanted), owners_(FindStepOwners(analysis, wanted)) {
    std::set<size_t> all;
    for (size_t i = 0; i < wanted.size(); ++i) {
      windows_.push_back(WindowsOf({i}));
      all.insert(i);
    }
    of_all_ = WindowsOf(all);
  }

  // Whether what the track's process does then is in a step.
  bool Has(TrackId track, uint64_t start_ns, uint64_t end_ns) {
    const Windows*& windows = of_tracks_[track];
    if (windows == nullptr) windows = &Of(analysis_.tracks[track].pid);
    return Overlaps(*windows, start_ns, end_ns);
  }
  const Windows& all() const { return of_all_; }
  std::map<uint32_t, SharedPauses> OutsideOfProcesses() const {
    std::map<uint32_t, SharedPauses> outside;
    std::map<size_t, SharedPauses> of_owner;
    for (const auto& [pid, owner] : owners_) {
      SharedPauses& of = of_owner[owner];
      if (!of) of = Outside(windows_[owner]);
      outside[pid] = of;
    }
    return outside;
  }
  // The time outside the steps of the processes that use a GPU, by GPU; processes without steps do
  // not count.
  std::map<uint32_t, SharedPauses> OutsideOfGpus() const {
    std::map<uint32_t, std::set<size_t>> users;
    for (const GpuWork& work : analysis_.correlation.work) {
      if (work.launch == GpuWork::kNoLaunch) continue;
      std::set<size_t>& of = users[work.gpu];
      if (const auto owner = owners_.find(work.pid); owner != owners_.end())
        of.insert(owner->second);
    }
    std::map<uint32_t, SharedPauses> found;
    std::map<std::set<size_t>, SharedPauses> of_owners;
    size_t steps_left = kFewSteps;
    for (auto& [gpu, owners] : users) {
      size_t steps = 0;
      for (const size_t owner : owners) steps += wanted_[owner].steps.size();
      if (steps > steps_left && owners.size() > 1) owners.clear();  // the steps of all
      SharedPauses& outside = of_owners[owners];
      if (!outside) {
        outside = Outside(owners.empty() ? of_all_ : WindowsOf(owners));
        if (owners.size() > 1) steps_left -= steps;
      }
      found[gpu] = outside;
    }
    return found;
  }

 private:
  // A process without steps works for the one that started it, or for all.
  const Windows& Of(uint32_t pid) const {
    const auto found = owners_.find(pid);
    return found == owners_.end() ? of_all_ : windows_[found->second];
  }
  static SharedPauses Outside(const Windows& windows) {
    return std::make_shared<const std::vector<Pause>>(TimesBetween(windows, 0, UINT64_MAX));
  }
  Windows WindowsOf(const std::set<size_t>& owners) const {
    Windows windows;
    for (const size_t owner : owners) {
      for (const Step& step : wanted_[owner].steps) windows.push_back({step.start_ns, step.end_ns});
    }
    Unite(windows);
    return windows;
  }

  const Analysis& analysis_;
  const std::vector<StepSeries>& wanted_;
  const std::map<uint32_t, size_t> owners_;  // in windows_
  std::vector<Windows> windows_;
  Windows of_all_;
  PerTrack<const Windows*> of_tracks_;
};

// Keeps the steps with these numbers, the last one included.
void KeepRange(uint64_t first, uint64_t last, StepSeries& series) {
  std::vector<Step>& steps = series.steps;
  const auto place = [&](uint64_t number) {
    return std::min<uint64_t>(number - std::min<uint64_t>(number, series.first), steps.size());
  };
  const uint64_t begin = place(first);
  const uint64_t end = std::max(begin, last == UINT64_MAX ? steps.size() : place(last + 1));
  steps.resize(end);
  steps.erase(steps.begin(), steps.begin() + static_cast<ptrdiff_t>(begin));
  series.first += begin;
  series.warm_up -= std::min<uint64_t>(series.warm_up, begin);
  // A range of steps of the warm-up alone asks for them.
  if (series.warm_up >= steps.size()) series.warm_up = 0;
  series.regular = static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.is_regular; }));
}

void Select(StepFilter& steps, const Analysis& analysis, Selection& shown) {
  const LoadedEvents& events = analysis.model.events;
  const Correlation& correlation = analysis.correlation;
  const auto is_during = [&](const auto& event) {
    const auto [start_ns, end_ns] = SpanOf(event);
    return steps.Has(event.track, start_ns, end_ns);
  };
  const auto is_of_driver = [&](const auto& event) {
    const uint64_t ns = analysis.clocks.Of(event.instance).ToMonotonic(event.start_ns);
    const uint32_t pid = correlation.PidOf(event.instance);
    return steps.Has(analysis.tracks.At(pid, pid, ns), ns, ns);
  };
  const auto is_launched = [&](const Launch& launch) {
    return steps.Has(launch.track, launch.start_ns, launch.start_ns);
  };
  KeepIf(events.cpu_samples, shown.events.cpu_samples, is_during);
  KeepIf(events.probe_hits, shown.events.probe_hits, is_during);
  KeepIf(events.off_cpu_waits, shown.events.off_cpu_waits, is_during);
  shown.events.off_cpu_sums = EventSet::None();  // when their times were is not known
  KeepIf(events.overheads, shown.events.overheads, is_of_driver);
  KeepIf(events.jit_operations, shown.events.jit_operations, is_of_driver);
  KeepIf(analysis.nvtx.all(), shown.nvtx_ranges, is_during);
  shown.work = EventSet::Where(correlation.work.size(), [&](size_t i) {
    if (!shown.work.Has(i)) return false;
    const GpuWork& work = correlation.work[i];
    if (work.launch != GpuWork::kNoLaunch && steps.Has(work.track, work.called_ns, work.called_ns))
      return true;
    if (work.keeps_gpu_busy()) shown.filtered_work.Add(i);
    return false;
  });
  KeepIf(correlation.launches, shown.launches, is_launched);
  shown.outside_of_gpu = steps.OutsideOfGpus();
  shown.outside_of_process = steps.OutsideOfProcesses();
  shown.outside_of_others = TimesBetween(steps.all(), 0, UINT64_MAX);
  // The gaps before the first step and after the last one reach to what runs outside them.
  if (steps.all().empty()) return;
  shown.from_ns = std::max(shown.from_ns, steps.all().front().start_ns);
  shown.to_ns = std::min(shown.to_ns, steps.all().back().end_ns);
  for (const uint32_t place : Selected(correlation.work, shown.filtered_work).places()) {
    AddAround(correlation.work, place, shown);
  }
}

}  // namespace

Result<StepRange> ParseStepRange(std::string_view text) {
  StepRange range;
  const size_t dash = text.find('-');
  const std::string_view first = text.substr(0, dash);
  std::optional<uint64_t> number = first.empty() ? 0 : ParseNumber<uint64_t>(first);
  bool is_range = number.has_value() && !text.empty() && text != "-";
  range.first = number.value_or(0);
  if (dash == std::string_view::npos) {
    range.last = range.first;
  } else if (const std::string_view last = text.substr(dash + 1); !last.empty()) {
    number = ParseNumber<uint64_t>(last);
    is_range = is_range && number.has_value() && *number >= range.first;
    range.last = number.value_or(0);
  }
  if (is_range) return range;
  return Error{ErrorKind::kUsage, Format("'{}': expected steps as in 37, 10-20 or 100-", text),
               "steps are numbered from 0; --table step_trace lists them"};
}

Status SelectSteps(const StepRange& range, const std::vector<StepSeries>& all, Analysis& analysis) {
  size_t most = 0;
  for (const StepSeries& series : all) most = std::max(most, series.steps.size());
  if (most == 0) {
    return Error{ErrorKind::kUsage, "--step-range: no steps were found",
                 "--step nvtx:REGEX or function:REGEX says what a step is"};
  }
  if (range.first >= most) {
    return Error{ErrorKind::kUsage, Format("--step-range: there is no step {}", range.first),
                 Format("the last one is {}; --table step_trace lists them", most - 1)};
  }
  std::vector<StepSeries> wanted = all;
  for (StepSeries& series : wanted) KeepRange(range.first, range.last, series);
  SelectSteps(wanted, analysis);
  return Ok();
}

std::vector<StepSeries> ShownSteps(std::vector<StepSeries> all,
                                   const std::optional<StepRange>& range, const Selection& shown) {
  for (StepSeries& series : all) {
    if (range) KeepRange(range->first, range->last, series);
    const std::vector<Step>& steps = series.steps;
    const auto begin = std::partition_point(steps.begin(), steps.end(), [&](const Step& step) {
      return step.start_ns < shown.from_ns;
    });
    const auto end = std::partition_point(
        begin, steps.end(), [&](const Step& step) { return step.end_ns <= shown.to_ns; });
    const auto first = series.first + static_cast<size_t>(begin - steps.begin());
    const auto count = static_cast<size_t>(end - begin);
    if (count == 0) {
      series.steps.clear();
    } else {
      KeepRange(first, first + count - 1, series);
    }
  }
  std::erase_if(all, [](const StepSeries& series) { return series.steps.empty(); });
  return all;
}

void SelectSteps(const std::vector<StepSeries>& wanted, Analysis& analysis) {
  StepFilter steps(analysis, wanted);
  Select(steps, analysis, analysis.shown);
  FinishSelection(analysis, analysis.shown);
}

}  // namespace xpu
