// Counters of a trace: how busy each GPU is, the bandwidth of its copies, and how many launches
// wait for it.
#pragma once

#include <cstdint>

#include "report/analysis/analysis.h"
#include "report/views/chrome_trace/trace_tracks.h"
#include "report/views/chrome_trace/trace_writer.h"

namespace xpu {

// Up to `end_ns`. Returns the length of the buckets that the counters are means of, 0: there is
// nothing to count.
uint64_t WriteTraceCounters(const Analysis& analysis, uint64_t end_ns, TraceTracks& tracks,
                            TraceWriter& writer);

}  // namespace xpu
