// The numbers of a correlation: what was matched, what is missing, and what explains it.
#pragma once

#include "report/model/model.h"
#include "report/trace/correlation.h"
#include "report/trace/graph_nodes.h"
#include "report/trace/selection.h"

namespace xpu {

// Counts what is selected; without Counts::stacks_duplicate.
Correlation::Counts CountCorrelation(const Model& model, const GraphNodes& graph_nodes,
                                     const Correlation& correlation, const Selection& shown);

// Events whose other half is in a part of the recording that is not here. Each is in the count of
// the same kind of Correlation::Counts too.
struct MissingCounterparts {
  uint64_t pending = 0;  // launches of a part that another one follows
  // At the beginningning of a part that is not the recording's first:
  uint64_t kernels = 0;  // and graph replays, without their launch
  uint64_t copies = 0;   // and sets, likewise
  uint64_t waits = 0;    // likewise
  uint64_t stacks = 0;   // calls without their stack
};
MissingCounterparts FindMissingCounterparts(const Model& model, const Correlation& correlation,
                                            const Selection& shown);

// Returns how many of Correlation::Counts::stacks_missing neither the recorder has counted nor
// another part has.
uint64_t StacksNotCounted(const Model& model, const Correlation& correlation,
                          const Selection& shown);

}  // namespace xpu
