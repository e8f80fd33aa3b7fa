// The records of a capture as tables, one for each kind, made from the description of records that
// capture.capnp is: a new kind needs nothing here. What --dump prints of a field is in its cell.
#pragma once

#include <string_view>

#include "report/analysis/analysis.h"
#include "report/export/table_sink.h"

namespace xpu {

// `prefix` begins the name of each table. A field that holds a stack is the id of its innermost
// frame in the table `stack_node`, which comes last.
void WriteRecordTables(const Analysis& analysis, std::string_view prefix, TableSink& sink);

}  // namespace xpu
