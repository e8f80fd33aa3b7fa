// The tables that `nsys export --type sqlite` writes, as its users' scripts read them.
#pragma once

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/export/table_sink.h"

namespace xpu {

// Times are nanoseconds since the start of the recording. `paths` gets the stacks of calls:
// CUPTI_ACTIVITY_KIND_RUNTIME.callchainId is one.
void WriteNsysTables(Analysis& analysis, CallPaths& paths, TableSink& sink);

}  // namespace xpu
