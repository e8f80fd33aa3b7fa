#include "report/workload/step_selection.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "format/base/number.h"
#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/filter.h"
#include "report/model/intervals.h"
#include "report/model/recorded_time.h"
#include "report/workload/step_owners.h"

namespace xpu {
namespace {

// Steps that are copied for GPUs of several processes with steps of their own; the steps of all
// stand for what more a hostile capture has: as many GPUs as steps, each with another process.
constexpr size_t kFewSteps = size_t{1} << 20;

// Times that the steps take up, of one process or of all.
class Windows {
 public:
  void Add(const Step& step) { all_.push_back({step.start_ns, step.end_ns, {}}); }
  void Sort() { UnitePauses(all_); }

  bool Has(uint64_t time_ns) const { return Overlap(time_ns, time_ns + 1); }
  bool Overlap(uint64_t begin_ns, uint64_t end_ns) const {
    const auto after = FirstEndingAfter(all_, begin_ns);
    return after != all_.end() && after->start_ns < std::max(end_ns, begin_ns + 1);
  }
  std::vector<Pause> Outside() const {
    std::vector<Pause> outside;
    ForEachGap(all_, 0, UINT64_MAX, [&](uint64_t start_ns, uint64_t end_ns, size_t) {
      outside.push_back({start_ns, end_ns, {}});
    });
    return outside;
  }
  uint64_t start_ns() const { return all_.empty() ? 0 : all_.front().start_ns; }
  uint64_t end_ns() const { return all_.empty() ? 0 : all_.back().end_ns; }

 private:
  std::vector<Pause> all_;  // in order, none in another
};

class StepFilter {
 public:
  using SharedPauses = Selection::SharedPauses;

  StepFilter(const Analysis& analysis, const std::vector<StepSeries>& wanted)
      : wanted_(wanted), owners_(FindStepOwners(analysis, wanted)), windows_(wanted.size()) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      for (const Step& step : wanted[i].steps) {
        windows_[i].Add(step);
        of_all_.Add(step);
      }
      windows_[i].Sort();
    }
    of_all_.Sort();
  }

  // A process without steps works for the one that started it, or for all.
  const Windows& Of(uint32_t pid) const {
    const auto found = owners_.find(pid);
    return found == owners_.end() ? of_all_ : windows_[found->second];
  }
  const Windows& all() const { return of_all_; }
  std::map<uint32_t, SharedPauses> OutsideOfProcesses() const {
    std::map<uint32_t, SharedPauses> outside;
    std::map<size_t, SharedPauses> of_owner;
    for (const auto& [pid, owner] : owners_) {
      SharedPauses& of = of_owner[owner];
      if (!of) of = Share(windows_[owner]);
      outside[pid] = of;
    }
    return outside;
  }
  // By GPU, outside the steps of the processes that use it; those without steps are left out.
  std::map<uint32_t, SharedPauses> OutsideOfGpus(const Analysis& analysis) const {
    std::map<uint32_t, std::set<size_t>> users;
    for (const GpuWork& work : analysis.correlation.work) {
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
        outside = OutsideOf(owners);
        if (owners.size() > 1) steps_left -= steps;
      }
      found[gpu] = outside;
    }
    return found;
  }

 private:
  static SharedPauses Share(const Windows& windows) {
    return std::make_shared<const std::vector<Pause>>(windows.Outside());
  }
  SharedPauses OutsideOf(const std::set<size_t>& owners) const {
    if (owners.empty()) return Share(of_all_);
    if (owners.size() == 1) return Share(windows_[*owners.begin()]);
    Windows windows;
    for (const size_t owner : owners) {
      for (const Step& step : wanted_[owner].steps) windows.Add(step);
    }
    windows.Sort();
    return Share(windows);
  }

  const std::vector<StepSeries>& wanted_;
  const std::map<uint32_t, size_t> owners_;  // in windows_
  std::vector<Windows> windows_;
  Windows of_all_;
};

// Leaves the steps with these numbers, the last one included.
void LeaveNumbers(uint64_t first, uint64_t last, StepSeries& series) {
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
  // Who asks for those of the warm-up alone wants to see them.
  if (series.warm_up >= steps.size()) series.warm_up = 0;
  series.regular = static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.is_regular; }));
}

// Those of `set` that `wants` wants.
template <typename List, typename Wants>
void Keep(const List& list, Wants wants, EventSet& set) {
  set = EventSet::Where(list.size(), [&](size_t i) { return set.Has(i) && wants(list[i]); });
}

// The gaps before the first step and after the last one reach to what runs outside them.
void SetAround(const StepFilter& steps, const Analysis& analysis, Selection& shown) {
  shown.from_ns = std::max(shown.from_ns, steps.all().start_ns());
  shown.to_ns = std::min(shown.to_ns, steps.all().end_ns());
  const GpuWorkList& all = analysis.correlation.work;
  for (uint32_t i = 0; i < all.size(); ++i) {
    if (!shown.filtered_work.Has(i)) continue;
    const GpuWork& work = all[i];
    const bool is_after = work.start_ns >= shown.to_ns;
    if (!is_after && work.end_ns > shown.from_ns) continue;
    WorkAround& around = shown.around[work.gpu];
    uint32_t& known = is_after ? around.after : around.before;
    const bool is_nearer =
        known == kNoWork || (is_after ? work.start_ns < all.Get<&GpuWork::start_ns>(known)
                                      : work.end_ns > all.Get<&GpuWork::end_ns>(known));
    if (is_nearer) known = i;
  }
}

void Select(const StepFilter& steps, const Analysis& analysis, Selection& shown) {
  const LoadedEvents& events = analysis.model.events;
  const Correlation& correlation = analysis.correlation;
  const auto is_at = [&](const auto& event) { return steps.Of(event.pid).Has(event.time_ns); };
  const auto is_of_driver = [&](const auto& event) {
    const uint64_t ns = analysis.clocks.Of(event.instance).ToMonotonic(event.start_ns);
    return steps.Of(analysis.correlation.PidOf(event.instance)).Has(ns);
  };
  Keep(events.cpu_samples, is_at, shown.events.cpu_samples);
  Keep(events.probe_hits, is_at, shown.events.probe_hits);
  const auto is_during = [&](const auto& wait) {
    return steps.Of(wait.pid).Overlap(wait.start_ns, wait.end_ns);
  };
  Keep(events.off_cpu_waits, is_during, shown.events.off_cpu_waits);
  shown.events.off_cpu_sums = EventSet::None();  // when their times were is not known
  Keep(events.overheads, is_of_driver, shown.events.overheads);
  Keep(events.jit_operations, is_of_driver, shown.events.jit_operations);
  const auto is_in = [&](const NvtxRange& range) {
    return steps.Of(range.pid).Overlap(range.start_ns, range.end_ns);
  };
  Keep(analysis.nvtx.all(), is_in, shown.nvtx_ranges);
  const auto is_launched = [&](const Launch& launch) {
    return steps.Of(launch.pid).Has(launch.start_ns);
  };
  const EventSet before = shown.work;
  const auto is_of_step = [&](const GpuWork& work) {
    return work.launch != GpuWork::kNoLaunch && is_launched(correlation.launches[work.launch]);
  };
  Keep(correlation.work, is_of_step, shown.work);
  for (size_t i = 0; i < correlation.work.size(); ++i) {
    const GpuWork& work = correlation.work[i];
    const bool runs = work.timed && work.end_ns > work.start_ns;
    const bool is_left_out = before.Has(i) && !shown.work.Has(i);
    if (is_left_out && runs && work.kind != WorkKind::kSynchronization) shown.filtered_work.Add(i);
  }
  Keep(correlation.launches, is_launched, shown.launches);
  shown.outside_of_gpu = steps.OutsideOfGpus(analysis);
  shown.outside_of_process = steps.OutsideOfProcesses();
  shown.outside_of_others = steps.all().Outside();
  SetAround(steps, analysis, shown);
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
  for (StepSeries& series : wanted) LeaveNumbers(range.first, range.last, series);
  SelectSteps(wanted, analysis);
  return Ok();
}

std::vector<StepSeries> ShownSteps(std::vector<StepSeries> all,
                                   const std::optional<StepRange>& range, const Selection& shown) {
  for (StepSeries& series : all) {
    if (range) LeaveNumbers(range->first, range->last, series);
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
      LeaveNumbers(first, first + count - 1, series);
    }
  }
  std::erase_if(all, [](const StepSeries& series) { return series.steps.empty(); });
  return all;
}

void SelectSteps(const std::vector<StepSeries>& wanted, Analysis& analysis) {
  Select(StepFilter(analysis, wanted), analysis, analysis.shown);
  FinishSelection(analysis, analysis.shown);
}

}  // namespace xpu
