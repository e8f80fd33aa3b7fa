// A loaded capture, on one clock and correlated: what every report begins with, made once and never
// changed. Each member is made from the ones before it: order -> processes -> clocks -> correlate.
// Which part of it is shown is a Selection.
#pragma once

#include <cstdint>

#include "report/model/clock_fit.h"
#include "report/model/model.h"
#include "report/model/process_history.h"
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

  const Model model;
  const uint64_t recorded_until_ns;  // RecordedUntilNs()
  const ProcessHistory processes;
  const Clocks clocks;
  const ApiNames api_names;
  const GpuDevices gpus;
  const GraphNodes graph_nodes;
  const Correlation correlation;
  const NvtxRanges nvtx;
};

}  // namespace xpu
