// The tables of an export, whatever its format.
#pragma once

#include <string_view>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/export/table_sink.h"

namespace xpu {

// ---- record_tables.cpp: the records of a capture
//
// There is one table for each kind of record, made from the description of records that
// capture.capnp is: a new kind needs nothing here. A cell has what --dump prints of the field.

// `prefix` begins the name of each table. A field that holds a stack is the id of its innermost
// frame in the table `stack_node`, which comes last.
void WriteRecordTables(const Analysis& analysis, std::string_view prefix, TableSink& sink);

// ---- trace_tables.cpp: what xpu-report makes of the records
//
// Calls and GPU work on one clock and matched, call stacks with names, processes and threads.

// `prefix` begins the name of each table. `paths` gets the stacks of calls, work and samples;
// WriteStackTables writes them afterwards.
void WriteTraceTables(Analysis& analysis, CallPaths& paths, std::string_view prefix,
                      TableSink& sink);
// The tables `stack` and `frame`.
void WriteStackTables(const Analysis& analysis, const CallTree& tree, std::string_view prefix,
                      TableSink& sink);

// ---- nsys_tables.cpp: the tables of `nsys export --type sqlite`, for scripts that read them

// Times are nanoseconds since the start of the recording. `paths` gets the stacks of calls:
// CUPTI_ACTIVITY_KIND_RUNTIME.callchainId is one.
void WriteNsysTables(Analysis& analysis, CallPaths& paths, TableSink& sink);

}  // namespace xpu
