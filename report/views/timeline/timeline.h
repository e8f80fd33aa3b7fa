// Writes what a trace shows of a capture, in order.
#pragma once

#include <cstdint>
#include <string>

#include "report/analysis/analysis.h"
#include "report/base/output.h"
#include "report/views/timeline/trace_sink.h"
#include "report/views/view.h"

namespace xpu {

// The time of the first event that is shown.
uint64_t FirstTimeOf(const Analysis& analysis);

// All of it into the sink, whose output is `output`. `notes` gets a sentence when
// options.max_events cut it.
void WriteTimeline(Analysis& analysis, const ViewOptions& options, uint64_t base_ns,
                   TraceSink& sink, const Output& output, std::string& notes);

}  // namespace xpu
