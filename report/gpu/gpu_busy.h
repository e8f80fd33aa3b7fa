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
};

struct GpuBusy {
  uint32_t gpu = 0;             // as the report numbers them
  uint64_t busy_ns = 0;         // length of all spans
  uint64_t sum_ns = 0;          // of all work, what ran at once counted as often
  std::vector<BusySpan> spans;  // ascending, neither overlapping nor touching

  uint64_t paused_ns = 0;  // of the time between spans, by pauses of the recording

  // From the start of the first span to the end of the last one, without pauses.
  uint64_t active_ns() const {
    return spans.empty() ? 0 : spans.back().end_ns - spans.front().start_ns - paused_ns;
  }
};

// Sorts spans and joins those that overlap or touch.
void Unite(std::vector<BusySpan>& spans);

// How long the recording was paused in the gaps between united spans.
uint64_t PausedBetween(const std::vector<BusySpan>& spans, const std::vector<Pause>& pauses);

// Of kernels, copies, sets and graph replays that have a time; by GPU.
std::vector<GpuBusy> FindGpuBusy(const Analysis& analysis);

}  // namespace xpu
