#include "report/query/gpu_busy.h"

#include <algorithm>
#include <map>
#include <utility>

#include "format/base/saturated.h"
#include "report/analysis/call_tree.h"
#include "report/model/intervals.h"

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
      for (const IdleGap& gap : FindGaps(analysis, gpu)) gpu.others_ns -= gap.ns;
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

std::vector<IdleGap> FindGaps(const Analysis& analysis, const GpuBusy& gpu) {
  const GpuWorkList& work = analysis.correlation.work;
  std::vector<IdleGap> gaps;
  const auto add = [&](IdleGap gap) {
    if (gap.end_ns <= gap.start_ns) return;
    gap.gpu = gpu.gpu;
    gap.ns = CountedNs(gpu, gap.start_ns, gap.end_ns);
    if (gap.ns > 0) gaps.push_back(gap);
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
                 part.other = in_gap->first;
                 part.other_launch = work.Get<&GpuWork::launch>(part.other);
                 add(part);
                 gap.start_ns = std::max(gap.start_ns, in_gap->end_ns);
                 gap.before = kNoWork;
               }
               gap.after = next == gpu.spans.size() ? gpu.around->after : gpu.spans[next].first;
               gap.launch = work.Get<&GpuWork::launch>(gap.after);
               add(gap);
             });
  return gaps;
}

}  // namespace xpu
