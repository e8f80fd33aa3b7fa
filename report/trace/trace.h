// A loaded capture, on one clock and correlated: the base of every report, computed once and never
// changed. Each member is computed from those before it: order -> processes -> tracks -> clocks ->
// correlate.
//
// Filters do not edit it: a Selection says which part is shown, and several selections of one trace
// lie side by side. Removing events from the lists was rejected: indices had to be rewritten, and a
// trace could have only one selection. GPU work is matched with calls by correlation id, and by
// time only on request, and each match says how it was made.
#pragma once

#include <cstdint>

#include "report/model/clock_fit.h"
#include "report/model/model.h"
#include "report/model/process_history.h"
#include "report/model/source_parts.h"
#include "report/trace/api_names.h"
#include "report/trace/containers.h"
#include "report/trace/correlation.h"
#include "report/trace/gpu_devices.h"
#include "report/trace/graph_nodes.h"
#include "report/trace/job.h"
#include "report/trace/match.h"
#include "report/trace/nvtx.h"
#include "report/trace/tracks.h"

namespace xpu {

class Trace {
  Model loaded_;  // its events get their tracks, then nothing changes it

 public:
  explicit Trace(Model loaded, const CorrelateOptions& correlate = {});
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const Model& model;
  const uint64_t recorded_until_ns;  // RecordedUntilNs()
  const ProcessHistory processes;
  const Job job;
  const Containers containers;
  const Tracks tracks;
  const Clocks clocks;
  const ApiNames api_names;
  const GpuDevices gpus;
  const GraphNodes graph_nodes;
  const Correlation correlation;
  const NvtxRanges nvtx;
  const SourceParts sources;
};

}  // namespace xpu
