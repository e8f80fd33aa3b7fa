// A loaded capture, on one clock and correlated: what every report begins with, made once. Each
// member is made from the ones before it: order -> processes -> clocks -> correlate. Those that are
// not const are what a filter takes events out of (analysis/filter.h).
#pragma once

#include <cstdint>

#include "report/model/clock_fit.h"
#include "report/model/model.h"
#include "report/model/process_table.h"
#include "report/trace/api_names.h"
#include "report/trace/correlation.h"
#include "report/trace/gpu_devices.h"
#include "report/trace/graph_nodes.h"
#include "report/trace/match.h"
#include "report/trace/nvtx.h"

namespace xpu {

struct Trace {
  explicit Trace(Model loaded, const CorrelateOptions& correlate = {});
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  Model model;
  const uint64_t recorded_until_ns;  // RecordedUntilNs() before any filter
  const ProcessTable processes;
  const Clocks clocks;
  const ApiNames api_names;
  const GpuDevices gpus;
  const GraphNodes graph_nodes;
  Correlation correlation;
  NvtxRanges nvtx;
};

}  // namespace xpu
