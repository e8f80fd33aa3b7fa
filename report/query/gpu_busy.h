// When each GPU had something to do: the union over its streams.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/model/recorded_time.h"

namespace xpu {

// The time that does not count for a GPU: that of all GPUs and its own, which overlap. They are not
// united, for a capture may have as many lists of the one as the other has pauses.
class Uncounted {
 public:
  // Both in order.
  Uncounted(Selection::SharedPauses of_all, std::vector<Pause> own);

  // How much of that time does not count.
  uint64_t Ns(uint64_t start_ns, uint64_t end_ns) const {
    return end_ns <= start_ns ? 0 : Until(end_ns) - Until(start_ns);
  }
  // The first of its pauses that ends after `time_ns`; it may overlap the next one. At UINT64_MAX
  // if there is none.
  Pause NextAt(uint64_t time_ns) const;
  const std::vector<Pause>& own() const { return own_; }

 private:
  uint64_t Until(uint64_t ns) const;

  Selection::SharedPauses of_all_;
  std::vector<Pause> own_;  // Pause::before_ns: all uncounted time that is earlier
};

struct BusySpan {
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC
  uint64_t end_ns = 0;
  uint32_t first = 0;  // what began it: in Correlation::work
  uint32_t last = 0;   // what ended last: likewise
};

struct GpuBusy {
  uint32_t gpu = 0;             // as the report numbers them
  uint64_t busy_ns = 0;         // length of all spans
  uint64_t sum_ns = 0;          // of all work, what ran at once counted as often
  std::vector<BusySpan> spans;  // ascending, neither overlapping nor touching

  // From its first to its last work. Of a time range also what it cuts off a gap: from the start
  // or to the end of the range, where there is work outside it.
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;
  const WorkAround* around = nullptr;  // that work; nullptr: there is none, or no range

  std::vector<BusySpan> others;  // likewise: work that a filter leaves out
  // UncountedTimes, from one recording to the next without a gap.
  std::shared_ptr<const Uncounted> uncounted;
  uint64_t paused_ns = 0;  // of the time between spans, by `uncounted`
  uint64_t others_ns = 0;  // of the rest of it, in which only `others` ran

  // From `from_ns` to `to_ns`, without pauses.
  uint64_t active_ns() const { return to_ns - from_ns - paused_ns; }
  uint64_t idle_ns() const { return active_ns() - busy_ns - others_ns; }
};

// A stretch of time in which a GPU had nothing to do.
struct IdleGap {
  uint32_t gpu = 0;  // as the report numbers them
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t ns = 0;                   // without what GpuBusy::uncounted has of it
  uint32_t before = kNoWork;         // in Correlation::work; kNoWork: what a filter leaves out
  uint32_t after = kNoWork;          // what ended it; likewise
  uint32_t filtered_work = kNoWork;  // ended the gap but is filtered out
  // The call that started what ended it, in Correlation::launches; kNoLaunch: it is not known.
  uint32_t launch = GpuWork::kNoLaunch;
  uint32_t filtered_launch = GpuWork::kNoLaunch;
};

// Makes the list disjoint (intervals.h). Spans that start together are in the order of their work.
void UniteSpans(std::vector<BusySpan>& spans);

// Unites kernels, memory operations and graph replays that have a time; one entry for each GPU.
std::vector<GpuBusy> FindGpuBusy(const Analysis& analysis);

// When nothing is known of what the GPUs did: pauses of the recording, the time between two
// recordings, and what lies between the ranges that a filter wants. In order.
std::vector<Pause> UncountedTime(const Analysis& analysis);
// The uncounted time of each GPU, which includes what lies outside the steps that are wanted. GPUs
// for which that is the same share it: a capture may have as many GPUs as steps.
class UncountedTimes {
 public:
  explicit UncountedTimes(const Analysis& analysis);
  const std::shared_ptr<const Uncounted>& Of(uint32_t gpu);
  const Selection::SharedPauses& of_all() const { return of_all_; }

 private:
  const Selection& shown_;
  const Selection::SharedPauses of_all_;
  // The key is the list of what is outside the steps; nullptr for GPUs without one.
  std::map<Selection::SharedPauses, std::shared_ptr<const Uncounted>> by_outside_;
};

// How much of that time counts.
uint64_t CountedNs(const GpuBusy& gpu, uint64_t start_ns, uint64_t end_ns);

// Visits all gaps of a GPU in order; there may be as many as operations.
void VisitGaps(const Analysis& analysis, const GpuBusy& gpu,
               const std::function<void(const IdleGap&)>& visit);
std::vector<IdleGap> FindGaps(const Analysis& analysis, const GpuBusy& gpu);

// The life of a GPU in a recording: what came before its steady state, the steady state, the rest.
//
// Most programs import, compile and plan at first, and then do the same again and again. A gap that
// is long, and far longer than others that the same call ended, is of the first kind. The steady
// state is the longest stretch between such gaps that has a good part of the work.
struct GpuPhases {
  uint64_t first_ns = 0;  // GpuBusy::from_ns, CLOCK_MONOTONIC
  uint64_t steady_ns = 0;
  uint64_t steady_end_ns = 0;
  uint64_t last_ns = 0;  // GpuBusy::to_ns

  // Without them the steady state is all from the first to the last work.
  bool has_warm_up() const { return steady_ns > first_ns; }
  bool has_tail() const { return steady_end_ns < last_ns; }
};

// `gaps` are all of its, ended by some of `launches`.
GpuPhases FindPhases(const GpuBusy& gpu, const std::vector<IdleGap>& gaps,
                     const LaunchList& launches);

}  // namespace xpu
