#include "report/cli/help.h"

#include <string_view>

#include <zlib.h>

#include "format/base/text.h"
#include "format/version.h"
#include "report/cli/view_table.h"

namespace xpu {
namespace {

// CLI11's own help lists types and groups in more lines than a screen has.
constexpr std::string_view kBeforeViews =
    R"(Usage: xpu-report [OPTIONS] [CAPTURE...]
Shows what xpu-record recorded; several captures as one (default capture.xpu).

Views (one; none: a summary)
)";

constexpr std::string_view kBehindViews =
    R"(  --import cupti-text FILE -o OUT.xpu  a capture of what CUPTI's samples print

Options
  -i CAPTURE, -o, --output FILE  what to read; to write, compressed with .gz
  --kernel-names WHICH  full (default), short (that of text and paths), mangled
  --graph-stacks WHICH  work of graphs under launch, creation or both (default)
  --no-pager, --strict  no pager on a terminal; status 3 when data was lost
  --correlate HOW       match calls and work: auto (default), id, nesting, time
  --sample 1/N          look at one of N events, which stands for the others
  --version, -h, --help  version and features; this (more in xpu-report(1))

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
  -n, --rows N          rows of each table (0: all; default 20, csv, json: all)
  --table NAME, --list-tables  only this table (means --top); the names of all
  --format FORMAT, --sort COLUMN  table (default), csv, json; by it (--top)
  --max-events N, --title TEXT
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
  return text += kBehindViews;
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
