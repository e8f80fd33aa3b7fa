// What a report looks at: a trace, the names of its stacks, and which part of it is shown. A
// filter, when there is one, takes events out of `model` and `correlation` after they were made.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/analysis/call_tree.h"
#include "report/analysis/sampled_events.h"
#include "report/model/recorded_time.h"
#include "report/stacks/stack_names.h"
#include "report/trace/trace.h"

namespace xpu {

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

// Functions that need no more of it take the Trace or the StackNames.
struct Analysis : Trace, StackNames {
  explicit Analysis(Model loaded, SymbolOptions options = {},
                    const CorrelateOptions& correlate = {});

  // Those that CPU samples were taken at, when only the samples of one are left.
  std::vector<SampledEvent> sampled_events;
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
  uint64_t kept_of = 1;  // each event stands for so many (ThinOut)
  CallTreeLimit call_trees;
};

}  // namespace xpu
