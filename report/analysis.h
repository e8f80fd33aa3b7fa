// The passes over one capture, composed. Each member is made from the ones before it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/correlate/api_names.h"
#include "report/correlate/correlate.h"
#include "report/correlate/graph_nodes.h"
#include "report/correlate/nvtx.h"
#include "report/gpu/gpu_devices.h"
#include "report/model/clock_fit.h"
#include "report/model/model.h"
#include "report/model/process_table.h"
#include "report/model/recorded_time.h"
#include "report/select/sampled_events.h"
#include "report/stacks/frames.h"
#include "report/stacks/mixed_stacks.h"
#include "report/stacks/stack_resolver.h"
#include "report/stacks/symbol_slices.h"
#include "report/tree/call_tree.h"
#include "symbolize/symbolizer.h"

namespace xpu {

// How addresses become frames.
struct SymbolOptions {
  Symbolizer::Options symbolizer = {};
  FramePlaces places = {};
  PythonView python = PythonView::kMerge;
  bool lines_if_any = false;  // the view shows lines, which nobody asked for
};

// Work that a filter took out: its GPU was not idle meanwhile.
struct WorkElsewhere {
  uint32_t gpu = 0;  // as the report numbers them
  uint32_t pid = 0;  // of the thread that launched it; 0: not known
  uint32_t tid = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t launched_ns = UINT64_MAX;  // when its call returned; UINT64_MAX: not known
  ApiKind launched_by = ApiKind::kOther;
};

// Work that a filter took out, with the call that started it: neither is in Correlation any more.
struct WorkLeftOut {
  GpuWork work;  // `launch` and `creation` are kNoLaunch
  std::optional<Launch> launch = {};
};

// What of a GPU a time range cuts off that the other filters want: a gap may reach out of the range
// to it.
struct WorkAround {
  std::optional<WorkLeftOut> before;
  std::optional<WorkLeftOut> after;
};

struct Analysis {
  // order -> processes -> clocks -> correlate; stacks are resolved when views ask. A filter, when
  // there is one, takes events out of `model` between the two (run.cpp).
  explicit Analysis(Model loaded, SymbolOptions options = {},
                    const CorrelateOptions& correlate = {});
  Analysis(const Analysis&) = delete;
  Analysis& operator=(const Analysis&) = delete;

  Model model;
  // Those that CPU samples were taken at, when only the samples of one are left.
  std::vector<SampledEvent> sampled_events;
  const bool lines_if_any;          // as in SymbolOptions
  bool event_is_asked_for = false;  // that one, by its name
  std::string part;  // the options of the filter that was applied; empty: all is here
  std::vector<WorkElsewhere> work_elsewhere;  // that the filter took out
  std::vector<Pause> outside;  // likewise: the time between the ranges that it wants; in order
  std::vector<WorkLeftOut> waits_left_out;  // likewise: synchronisations
  std::map<uint32_t, WorkAround> around;    // by GPU, of a filter with a time range:
  uint64_t shown_from_ns = 0;               // where it begins, CLOCK_MONOTONIC
  uint64_t shown_to_ns = UINT64_MAX;        // where it ends
  // Demangled, of the capture that this one is compared with: short names are the same in both.
  std::vector<std::string> other_kernels;
  uint64_t kept_of = 1;  // each event stands for so many (thin.h)
  CallTreeLimit call_trees;
  uint64_t recorded_until_ns = 0;  // RecordedUntilNs() before any filter
  ProcessTable processes;
  Clocks clocks;
  ApiNames api_names;
  GpuDevices gpus;
  GraphNodes graph_nodes;
  Correlation correlation;
  NvtxRanges nvtx;
  SliceCollection slices;
  Symbolizer symbolizer;
  FrameTable frames;
  StackResolver resolver;
  MixedStacks stacks;
};

}  // namespace xpu
