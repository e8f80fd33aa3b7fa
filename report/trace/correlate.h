// Finds which call of the program caused which GPU work.
//
// Calls and GPU records belong together when they share (instance, correlation id); how ids that
// wrapped are distinguished is in launches.h. GPU work is never matched by time alone, unless
// `--correlate=time` asks for it. Work of a node
// of a CUDA graph belongs to two calls: the one that launched the graph, by its id, and the one
// that put the node into the graph, through graph_nodes.h.
#pragma once

#include "report/model/clock_fit.h"
#include "report/model/model.h"
#include "report/trace/api_names.h"
#include "report/trace/correlation.h"
#include "report/trace/gpu_devices.h"
#include "report/trace/graph_nodes.h"

namespace xpu {

// `model` in order of time.
Correlation Correlate(const Model& model, const Tracks& tracks, const Clocks& clocks,
                      const ApiNames& names, const GpuDevices& gpus, const GraphNodes& graph_nodes,
                      const CorrelateOptions& options = {});

}  // namespace xpu
