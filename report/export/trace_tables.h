// What xpu-report makes of the records, as tables: calls and GPU work on one clock and matched,
// call stacks with names, processes and threads.
#pragma once

#include <string>
#include <string_view>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/export/table_sink.h"

namespace xpu {

// `prefix` begins the name of each table. `paths` gets the stacks of calls, work and samples;
// WriteStackTables writes them afterwards.
void WriteTraceTables(Analysis& analysis, CallPaths& paths, std::string_view prefix,
                      TableSink& sink);
// The tables `stack` and `frame`.
void WriteStackTables(const Analysis& analysis, const CallTree& tree, std::string_view prefix,
                      TableSink& sink);

}  // namespace xpu
