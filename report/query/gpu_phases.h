// The life of a GPU in a recording: what came before its steady state, the steady state, the rest.
//
// Most programs import, compile and plan at first, and then do the same again and again. A gap that
// is long, and far longer than others that the same call ended, is of the first kind. The steady
// state is the longest stretch between such gaps that has a good part of the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/query/gpu_busy.h"
#include "report/query/gpu_idle.h"

namespace xpu {

struct GpuPhases {
  uint64_t first_ns = 0;  // GpuBusy::from_ns, CLOCK_MONOTONIC
  uint64_t steady_ns = 0;
  uint64_t steady_end_ns = 0;
  uint64_t last_ns = 0;  // GpuBusy::to_ns

  // Else the steady state is all from the first to the last work.
  bool has_warm_up() const { return steady_ns > first_ns; }
  bool has_tail() const { return steady_end_ns < last_ns; }
};

// `gaps` are all of its, ended by some of `launches`.
GpuPhases FindPhases(const GpuBusy& gpu, const std::vector<IdleGap>& gaps,
                     const LaunchList& launches);

}  // namespace xpu
