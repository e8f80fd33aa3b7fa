// A loaded capture, on one clock and correlated: what every report begins with, made once. Each
// member is made from the ones before it: order -> processes -> clocks -> correlate.
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
  uint64_t recorded_until_ns = 0;  // RecordedUntilNs() before any filter
  ProcessTable processes;
  Clocks clocks;
  ApiNames api_names;
  GpuDevices gpus;
  GraphNodes graph_nodes;
  Correlation correlation;
  NvtxRanges nvtx;
};

}  // namespace xpu
