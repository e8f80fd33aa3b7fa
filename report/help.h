// What `xpu-report --help` prints.
#pragma once

#include <string_view>

namespace xpu {

// CLI11's own help lists types and groups in more lines than a screen has.
inline constexpr std::string_view kHelpText =
    R"(Usage: xpu-report [OPTIONS] [CAPTURE...]
Shows what xpu-record recorded; several captures as one (default capture.xpu).

Views (one; none: a summary)
  --folded              folded stacks, for flamegraph.pl, inferno, speedscope
  --flamegraph          one HTML file (-o FILE.html) with zoom and search
  --chrome-trace        JSON for Perfetto and chrome://tracing
  --top                 tables of kernels, copies, API calls, functions, paths
  --diff BEFORE         tables of what became slower since the capture BEFORE
  --script              one line for each event, in order of time
  --dump                every record of the capture as text
  --import cupti-text FILE -o OUT.xpu  a capture of what CUPTI's samples print

Options
  -o, --output FILE     write to FILE, compressed when it ends in .gz
  --kernel-names WHICH  full (default), short or mangled
  --graph-stacks WHICH  work of graphs under launch, creation or both (default)
  --no-pager, --strict  no pager on a terminal; status 3 when data was lost
  --correlate HOW       match calls and work: auto (default), id, nesting, time
  --sample 1/N          look at one of N events, which stands for the others
  --list-tables, -h, --help, --version  of --top; this; (more in xpu-report(1))

Only a part (lists with commas; all must agree)
  --pid, --tid, --comm  processes, threads, names of threads or processes
  --device, --stream, --kernel REGEX, --api REGEX  GPU work and its calls
  --nvtx REGEX, --event NAME  in ranges of the program; CPU samples of one event
  --time FROM-TO        from the start of the recording: 1.5s-2s, 300ms-

Symbols
  --inline, --lines, --offsets  show inlined functions, file:line, +0x12
  --python WHICH        merge (default: Python in native stacks), only, native
  --symfs DIR, --debug-dir DIR, --debuginfod  where recorded and debug files are
  --export-symbols DIR, --embed-symbols  only write the symbols, or add to them

Options of --folded and --flamegraph
  --mode MODE           merge (default: CPU and GPU time), gpu, cpu, idle, probe
  --by WHAT             thread, process, stream or device first
  --device-tags, --keep-internal-frames  name the GPU; keep frames of CUDA
  --nvtx-frames         ranges that the program marked first
  --unit UNIT, --reverse  us (default), ns, samples; innermost first (--folded)

Options of tables, of --chrome-trace (--max-events) and --flamegraph (--title)
  -n, --rows N          rows of each table (default 20, 0: all)
  --format FORMAT       table (default), csv, json
  --table NAME, --sort COLUMN  only this table; by this column (--top)
  --max-events N, --title TEXT
)";

}  // namespace xpu
