#include "report/cli/help.h"

#include <string_view>

#include <zlib.h>

#include "format/base/text.h"
#include "format/version.h"
#include "report/cli/view_table.h"

namespace xpu {
namespace {

// CLI11's own help lists types and groups, and does not fit on a screen.
constexpr std::string_view kBeforeViews =
    R"(Usage: xpu-report [OPTIONS] [CAPTURE...]
Shows what xpu-record recorded (default capture.xpu); several are shown as one.

Views (only one; default: a summary)
)";

constexpr std::string_view kAfterViews =
    R"(  --import cupti-text FILE -o OUT.xpu  convert what CUPTI's samples print

Options
  -i CAPTURE, -o, --output FILE  input; output, compressed if it ends in .gz
  --kernel-names WHICH  full (default), short (default in text tables), mangled
  --graph-stacks WHICH  show graph work under launch, creation, both (default)
  --no-pager, --strict  use no pager; exit with status 3 if data was lost
  --correlate HOW       match calls and work: auto (default), id, nesting, time
  --sample 1/N          use 1 in N samples and calls, scaled by N
  --version, -h, --help  version and features; this help (see xpu-report(1))

Filters (combined with AND; lists are separated by commas)
  --pid, --tid, --comm  processes, threads, names of threads or processes
  --device, --stream, --kernel REGEX, --api REGEX  GPU work and its calls
  --nvtx REGEX, --event NAME  inside NVTX ranges; samples of one CPU event
  --time FROM-TO        since the start of the recording: 1.5s-2s, 300ms-

Symbols
  --inline, --lines, --offsets  show inlined functions, file:line, +0x12
  --python WHICH        merge (default: Python in native stacks), only, native
  --symfs DIR, --debug-dir DIR, --debuginfod  where to find binaries, debug info
  --export-symbols DIR, --embed-symbols  no view: export or embed symbols

Options of --folded and --flamegraph
  --mode MODE           merge (default: CPU and GPU time), gpu, cpu, idle, probe
  --by WHAT             group by thread, process, stream or device
  --device-tags, --keep-internal-frames  name the GPU; keep CUDA's own frames
  --nvtx-frames         put NVTX ranges first
  --unit UNIT, --reverse  us (default), ns, samples; innermost first (--folded)

Options of --top, --diff; --chrome-trace (--max-events); --flamegraph (--title)
  -n, --rows N          rows of each table (0: all; default 20; csv, json: all)
  --table NAME, --list-tables  print one table (implies --top); list all tables
  --format FORMAT, --sort COLUMN  table (default), csv, json; sort order (--top)
  --max-events N, --title TEXT  limit the trace; title of the page
)";

}  // namespace

std::string HelpText() {
  std::string text(kBeforeViews);
  for (const View& view : Views()) {
    if (view.option.empty()) continue;
    const std::string_view space = view.other_capture.empty() ? "" : " ";
    AppendFormat(text, "  {:<22}{}\n", Format("{}{}{}", view.option, space, view.other_capture),
                 view.help);
  }
  return text += kAfterViews;
}

std::string ReportVersionText() {
  return Format(
      "xpu-report {}\n"
      "format     {}\n"
      "features   DWARF 2 to 5, inlined functions, names of C++, Rust and Go, Python, NVTX,\n"
      "           debuginfod, import of cupti-text\n"
      "libraries  {}, zlib {}\n"
      "build      {}\n",
      XPU_VERSION, CaptureFormatVersion(), CaptureLibraries(), ::zlibVersion(), XPU_BUILD);
}

}  // namespace xpu
