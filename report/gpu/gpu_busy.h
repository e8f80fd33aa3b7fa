// When each GPU had something to do: the union over its streams.
#pragma once

#include <cstdint>
#include <vector>

#include "report/analysis.h"
#include "report/model/recorded_time.h"

namespace xpu {

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

  std::vector<BusySpan> others;  // likewise: work that a filter took out
  uint64_t paused_ns = 0;        // of the time between spans, by UncountedTime()
  uint64_t others_ns = 0;        // of the rest of it, in which only `others` ran

  // From the start of the first span to the end of the last one, without pauses.
  uint64_t active_ns() const {
    return spans.empty() ? 0 : spans.back().end_ns - spans.front().start_ns - paused_ns;
  }
  uint64_t idle_ns() const { return active_ns() - busy_ns - others_ns; }
};

// A stretch of time in which a GPU had nothing to do.
struct IdleGap {
  static constexpr uint32_t kNoWork = ~uint32_t{0};

  uint32_t gpu = 0;  // as the report numbers them
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t ns = 0;            // without what UncountedTime() has of it
  uint32_t before = kNoWork;  // what ended with its start; none: what a filter took out
  uint32_t after = kNoWork;   // what ended it; likewise
};

// Sorts spans and joins those that overlap or touch.
void Unite(std::vector<BusySpan>& spans);

// How long the recording was paused in the gaps between united spans.
uint64_t PausedBetween(const std::vector<BusySpan>& spans, const std::vector<Pause>& pauses);

// Of kernels, copies, sets and graph replays that have a time; by GPU.
std::vector<GpuBusy> FindGpuBusy(const Analysis& analysis);

// When nothing is known of what the GPUs did: pauses of the recording, and what lies between the
// ranges that a filter wants.
std::vector<Pause> UncountedTime(const Analysis& analysis);

// All gaps of a GPU, between its first and its last work, in order.
std::vector<IdleGap> FindGaps(const GpuBusy& gpu, const std::vector<Pause>& uncounted);

}  // namespace xpu
