// What users of other tools may type.
#pragma once

#include "format/base/command_line_option.h"

namespace xpu {

// Options of perf report and nsys stats, and what does the same here.
inline constexpr OtherToolOption kOtherToolOptions[] = {
    {"--stdio", "text is the default: a summary, or tables with --top"},
    {"--tui", "--flamegraph -o FILE.html is interactive; --top prints tables"},
    {"--gui", "--flamegraph -o FILE.html is interactive; --top prints tables"},
    {"--csv", "--top --format csv prints tables as CSV"},
    {"--json", "--top --format json prints tables as JSON"},
    {"--input", "-i CAPTURE, or the name alone"},
    {"-r", "--table NAME prints one table; --list-tables lists them"},
    {"--report", "--table NAME prints one table; --list-tables lists them"},
    {"-f", "--top --format csv or json"},
    {"-g", "--flamegraph, --folded and --table callpath_sum show stacks"},
    {"--call-graph", "--flamegraph, --folded and --table callpath_sum show stacks"},
    {"--children", "--table cpu_func_sum has the time of a function with and without its callees"},
    {"--no-children",
     "--table cpu_func_sum has the time of a function with and without its callees"},
    {"-s", "--top --sort COLUMN"},
    {"--comms", "--comm NAME,..."},
    {"--gpu", "--device N,... selects GPUs"},
    {"--gpus", "--device N,... selects GPUs"},
    {"--kernel-name", "--kernel REGEX selects kernels; --kernel-names WHICH shortens their names"},
    {"-k", "--kernel REGEX selects kernels"},
    {"--stats", "without a view, xpu-report prints the summary"},
    {"--timeunit", "tables are in nanoseconds; --folded has --unit"},
    {"--force-overwrite", "an existing file is replaced"},
    {"--force-export", "omit it: a capture needs no export"},
};

}  // namespace xpu
