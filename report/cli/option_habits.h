// Options of perf report and nsys stats, and what does the same here.
#pragma once

#include "format/base/command_line_option.h"

namespace xpu {

inline constexpr OptionHabit kReportHabits[] = {
    {"--stdio", "text is the default: without a view a summary, --top tables"},
    {"--tui", "--flamegraph -o FILE.html is the view to move in; --top has tables"},
    {"--gui", "--flamegraph -o FILE.html is the view to move in; --top has tables"},
    {"--csv", "--format csv: of the tables of --top"},
    {"--json", "--format json: of the tables of --top"},
    {"--input", "-i CAPTURE, or the name alone"},
    {"-r", "--table NAME; --list-tables lists them"},
    {"--report", "--table NAME; --list-tables lists them"},
    {"-f", "--format csv or json: of the tables of --top"},
    {"-g", "--flamegraph, --folded and --table callpath_sum show stacks"},
    {"--call-graph", "--flamegraph, --folded and --table callpath_sum show stacks"},
    {"--children", "--table cpu_func_sum has the time of a function with and without its callees"},
    {"--no-children",
     "--table cpu_func_sum has the time of a function with and without its callees"},
    {"-s", "--sort COLUMN: of the tables of --top"},
    {"--comms", "--comm NAME,..."},
    {"--stats", "the summary is what xpu-report prints without a view"},
    {"--timeunit", "tables are in nanoseconds; --folded has --unit"},
    {"--force-overwrite", "an existing file is replaced"},
    {"--force-export", "nothing is exported: a capture is read as it is"},
};

}  // namespace xpu
