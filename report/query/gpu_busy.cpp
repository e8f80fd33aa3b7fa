#include "report/query/gpu_busy.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "format/base/saturated.h"
#include "report/base/intervals.h"
#include "report/base/median.h"

namespace xpu {
namespace {

// Sets the time that counts. Returns false where there is none.
bool SetRange(const Analysis& analysis, GpuBusy& gpu) {
  const auto found = analysis.shown.around.find(gpu.gpu);
  if (found != analysis.shown.around.end()) gpu.around = &found->second;
  const bool is_before = gpu.around != nullptr && gpu.around->before != kNoWork;
  const bool is_after = gpu.around != nullptr && gpu.around->after != kNoWork;
  if (gpu.spans.empty() && !(is_before && is_after)) return false;
  gpu.from_ns = gpu.spans.empty() ? analysis.shown.from_ns : gpu.spans.front().start_ns;
  gpu.to_ns = gpu.spans.empty() ? analysis.shown.to_ns : gpu.spans.back().end_ns;
  if (is_before) gpu.from_ns = std::min(gpu.from_ns, analysis.shown.from_ns);
  if (is_after) gpu.to_ns = std::max(gpu.to_ns, analysis.shown.to_ns);
  return true;
}

// A GPU that has no work from one recording to the next was not idle: it is between its last work
// in the one and its first in the other, as before and after those of a single recording.
void SetUncounted(UncountedTimes& uncounted, const std::vector<Pause>& between, GpuBusy& gpu) {
  gpu.uncounted = uncounted.Of(gpu.gpu);
  if (!between.empty()) {
    std::vector<Pause> own = gpu.uncounted->own();
    ForEachGap(gpu.spans, gpu.from_ns, gpu.to_ns, [&](uint64_t start_ns, uint64_t end_ns, size_t) {
      if (PausedNs(between, start_ns, end_ns) > 0) own.push_back({start_ns, end_ns, {}});
    });
    UnitePauses(own);
    gpu.uncounted = std::make_shared<const Uncounted>(uncounted.of_all(), std::move(own));
  }
  ForEachGap(gpu.spans, gpu.from_ns, gpu.to_ns, [&](uint64_t start_ns, uint64_t end_ns, size_t) {
    gpu.paused_ns += gpu.uncounted->Ns(start_ns, end_ns);
  });
}

// A gap between kernels of one step is shorter.
constexpr uint64_t kLongNs = 1'000'000;
// Times the median of what the same call ends.
constexpr uint64_t kFarLonger = 10;
// So often a call ends gaps of a loop.
constexpr size_t kOften = 3;
// A pause of the steady state is shorter than this part of what lies before and after it.
constexpr uint64_t kPausePart = 10;
// The steady state has at least this part of the work, and so many pieces.
constexpr size_t kSteadyPart = 10;
constexpr size_t kSteadyWork = 50;

// One call of the program: its stacks, or what it starts where there are none.
using CallSite = std::tuple<StackId, StackId, uint32_t>;

CallSite SiteOf(const IdleGap& gap, const LaunchList& launches) {
  if (gap.launch == GpuWork::kNoLaunch) return {};
  const Launch& launch = launches[gap.launch];
  return {launch.stack, launch.python_stack, launch.callback_id};
}

std::vector<const IdleGap*> FindBreaks(const std::vector<IdleGap>& gaps,
                                       const LaunchList& launches) {
  std::map<CallSite, std::vector<uint64_t>> lengths;
  std::vector<std::pair<const IdleGap*, CallSite>> long_gaps;
  for (const IdleGap& gap : gaps) {
    const CallSite site = SiteOf(gap, launches);
    lengths[site].push_back(gap.ns);
    if (gap.ns >= kLongNs) long_gaps.emplace_back(&gap, site);
  }
  std::map<CallSite, uint64_t> limits;
  std::vector<const IdleGap*> breaks;
  for (const auto& [gap, site] : long_gaps) {
    const auto [limit, is_new] = limits.try_emplace(site, 0);
    std::vector<uint64_t>& of_site = lengths[site];
    if (is_new && of_site.size() >= kOften) {
      limit->second = MedianOf(of_site) * kFarLonger;
    }
    if (gap->ns > limit->second) breaks.push_back(gap);
  }
  return breaks;
}

struct SteadyStretch {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  size_t work = 0;  // spans of the GPU
};

// From break to break.
std::vector<SteadyStretch> FindStretches(const GpuBusy& gpu,
                                         const std::vector<const IdleGap*>& breaks) {
  std::vector<SteadyStretch> stretches;
  auto next = breaks.begin();
  for (const BusySpan& span : gpu.spans) {
    bool is_new = stretches.empty();
    while (next != breaks.end() && (*next)->start_ns < span.start_ns) {
      ++next;
      is_new = true;
    }
    if (is_new) stretches.push_back({.start_ns = span.start_ns});
    stretches.back().end_ns = span.end_ns;
    ++stretches.back().work;
  }
  // A gap that a time range cuts off is within the state at its side, unless it is a break itself.
  const auto is_break_at = [&](uint64_t start_ns) {
    return std::any_of(breaks.begin(), breaks.end(),
                       [&](const IdleGap* gap) { return gap->start_ns == start_ns; });
  };
  if (!is_break_at(gpu.from_ns)) stretches.front().start_ns = gpu.from_ns;
  if (!is_break_at(stretches.back().end_ns)) stretches.back().end_ns = gpu.to_ns;
  return stretches;
}

// Joins those that only a pause parts. Returns whether there were any.
bool JoinStretches(const GpuBusy& gpu, std::vector<SteadyStretch>& stretches) {
  size_t kept = 0;
  for (const SteadyStretch& stretch : stretches) {
    if (kept > 0) {
      SteadyStretch& before = stretches[kept - 1];
      const uint64_t shorter_ns = std::min(CountedNs(gpu, before.start_ns, before.end_ns),
                                           CountedNs(gpu, stretch.start_ns, stretch.end_ns));
      if (CountedNs(gpu, before.end_ns, stretch.start_ns) < shorter_ns / kPausePart) {
        before.end_ns = stretch.end_ns;
        before.work += stretch.work;
        continue;
      }
    }
    stretches[kept++] = stretch;
  }
  const bool has_joined = kept < stretches.size();
  stretches.resize(kept);
  return has_joined;
}

}  // namespace

void UniteSpans(std::vector<BusySpan>& spans) {
  Unite(spans, [](BusySpan& joined, const BusySpan& longer) { joined.last = longer.last; });
}

std::vector<GpuBusy> FindGpuBusy(const Analysis& analysis) {
  std::map<uint32_t, GpuBusy> gpus;
  for (const uint32_t i : analysis.Work().places()) {
    const GpuWork& work = analysis.correlation.work[i];
    if (!work.timed || work.kind == WorkKind::kSynchronization) continue;
    if (work.end_ns <= work.start_ns) continue;
    GpuBusy& gpu = gpus[work.gpu];
    gpu.spans.push_back({work.start_ns, work.end_ns, i, i});
    gpu.sum_ns = AddSaturated(gpu.sum_ns, work.end_ns - work.start_ns);
  }
  for (const auto& [number, around] : analysis.shown.around) gpus.try_emplace(number);
  for (const uint32_t i : analysis.FilteredWork().places()) {
    const GpuWork& work = analysis.correlation.work[i];
    const auto gpu = gpus.find(work.gpu);
    if (gpu != gpus.end()) gpu->second.others.push_back({work.start_ns, work.end_ns, i, i});
  }
  const std::vector<Pause> between = BetweenRecordings(analysis.model);
  UncountedTimes uncounted(analysis);
  std::vector<GpuBusy> all;
  for (auto& [number, gpu] : gpus) {
    gpu.gpu = number;
    UniteSpans(gpu.spans);
    if (!SetRange(analysis, gpu)) continue;
    gpu.busy_ns = LengthNs(gpu.spans);
    SetUncounted(uncounted, between, gpu);
    UniteSpans(gpu.others);
    if (!gpu.others.empty()) {
      gpu.others_ns = gpu.active_ns() - gpu.busy_ns;
      VisitGaps(analysis, gpu,
                [&others_ns = gpu.others_ns](const IdleGap& gap) { others_ns -= gap.ns; });
    }
    all.push_back(std::move(gpu));
  }
  return all;
}

std::vector<Pause> UncountedTime(const Analysis& analysis) {
  std::vector<Pause> all = FindPauses(analysis.model);
  for (const Pause& pause : BetweenRecordings(analysis.model)) all.push_back(pause);
  all.insert(all.end(), analysis.shown.outside.begin(), analysis.shown.outside.end());
  UnitePauses(all);
  return all;
}

Uncounted::Uncounted(Selection::SharedPauses of_all, std::vector<Pause> own)
    : of_all_(std::move(of_all)), own_(std::move(own)) {
  uint64_t before_ns = 0;
  uint64_t until_ns = 0;
  for (Pause& pause : own_) {
    before_ns += PausedNs(*of_all_, until_ns, pause.start_ns);
    pause.before_ns = before_ns;
    before_ns += pause.end_ns - pause.start_ns;
    until_ns = pause.end_ns;
  }
}

uint64_t Uncounted::Until(uint64_t ns) const {
  const auto later =
      std::upper_bound(own_.begin(), own_.end(), ns,
                       [](uint64_t at, const Pause& one) { return at < one.start_ns; });
  if (later == own_.begin()) return PausedNs(*of_all_, 0, ns);
  const Pause& last = *std::prev(later);
  return last.before_ns + std::min(ns, last.end_ns) - last.start_ns +
         PausedNs(*of_all_, last.end_ns, ns);
}

Pause Uncounted::NextAt(uint64_t time_ns) const {
  Pause next{UINT64_MAX, UINT64_MAX, {}};
  for (const std::vector<Pause>* pauses : {&own_, &*of_all_}) {
    const auto found = FirstEndingAfter(*pauses, time_ns);
    if (found != pauses->end() && found->start_ns < next.start_ns) next = *found;
  }
  return next;
}

UncountedTimes::UncountedTimes(const Analysis& analysis)
    : shown_(analysis.shown),
      of_all_(std::make_shared<const std::vector<Pause>>(UncountedTime(analysis))) {}

const std::shared_ptr<const Uncounted>& UncountedTimes::Of(uint32_t gpu) {
  const auto outside = shown_.outside_of_gpu.find(gpu);
  const bool has_own = outside != shown_.outside_of_gpu.end();
  std::shared_ptr<const Uncounted>& known =
      by_outside_[has_own ? outside->second : Selection::SharedPauses()];
  if (!known) {
    known = std::make_shared<const Uncounted>(of_all_,
                                              has_own ? *outside->second : std::vector<Pause>());
  }
  return known;
}

uint64_t CountedNs(const GpuBusy& gpu, uint64_t start_ns, uint64_t end_ns) {
  return end_ns - start_ns - gpu.uncounted->Ns(start_ns, end_ns);
}

void VisitGaps(const Analysis& analysis, const GpuBusy& gpu,
               const std::function<void(const IdleGap&)>& visit) {
  const GpuWorkList& work = analysis.correlation.work;
  const auto add = [&](IdleGap gap) {
    if (gap.end_ns <= gap.start_ns) return;
    gap.gpu = gpu.gpu;
    gap.ns = CountedNs(gpu, gap.start_ns, gap.end_ns);
    if (gap.ns > 0) visit(gap);
  };
  auto other = gpu.others.begin();
  ForEachGap(gpu.spans, gpu.from_ns, gpu.to_ns,
             [&](uint64_t start_ns, uint64_t end_ns, size_t next) {
               IdleGap gap{.start_ns = start_ns, .end_ns = end_ns};
               gap.before = next == 0 ? gpu.around->before : gpu.spans[next - 1].last;
               while (other != gpu.others.end() && other->end_ns <= start_ns) ++other;
               for (auto in_gap = other; in_gap != gpu.others.end() && in_gap->start_ns < end_ns;
                    ++in_gap) {
                 IdleGap part = gap;
                 part.end_ns = std::min(in_gap->start_ns, end_ns);
                 part.filtered_work = in_gap->first;
                 part.filtered_launch = work.Get<&GpuWork::launch>(part.filtered_work);
                 add(part);
                 gap.start_ns = std::max(gap.start_ns, in_gap->end_ns);
                 gap.before = kNoWork;
               }
               gap.after = next == gpu.spans.size() ? gpu.around->after : gpu.spans[next].first;
               gap.launch = work.Get<&GpuWork::launch>(gap.after);
               add(gap);
             });
}

std::vector<IdleGap> FindGaps(const Analysis& analysis, const GpuBusy& gpu) {
  std::vector<IdleGap> gaps;
  VisitGaps(analysis, gpu, [&](const IdleGap& gap) { gaps.push_back(gap); });
  return gaps;
}

GpuPhases FindPhases(const GpuBusy& gpu, const std::vector<IdleGap>& gaps,
                     const LaunchList& launches) {
  GpuPhases phases{.first_ns = gpu.from_ns,
                   .steady_ns = gpu.from_ns,
                   .steady_end_ns = gpu.to_ns,
                   .last_ns = gpu.to_ns};
  if (gpu.spans.empty()) return phases;
  std::vector<SteadyStretch> stretches = FindStretches(gpu, FindBreaks(gaps, launches));
  while (JoinStretches(gpu, stretches)) {
  }
  const size_t least = std::max(kSteadyWork, gpu.spans.size() / kSteadyPart);
  std::erase_if(stretches, [&](const SteadyStretch& stretch) { return stretch.work < least; });
  const auto steady = std::max_element(
      stretches.begin(), stretches.end(), [&](const SteadyStretch& a, const SteadyStretch& b) {
        return CountedNs(gpu, a.start_ns, a.end_ns) < CountedNs(gpu, b.start_ns, b.end_ns);
      });
  if (steady == stretches.end()) return phases;
  phases.steady_ns = steady->start_ns;
  phases.steady_end_ns = steady->end_ns;
  return phases;
}

}  // namespace xpu
