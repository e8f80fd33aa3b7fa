// Counters of a trace: how busy each GPU is, the bandwidth of its copies, and how many launches
// wait for it.
#pragma once

#include <cstdint>

#include "report/analysis/analysis.h"
#include "report/views/timeline/trace_sink.h"
#include "report/views/timeline/trace_tracks.h"

namespace xpu {

// Up to `end_ns`. Returns the length of the bins that the counters are means of, 0: there is
// nothing to count.
uint64_t WriteTraceCounters(const Analysis& analysis, uint64_t end_ns, TraceTracks& tracks,
                            TraceSink& sink);

}  // namespace xpu
