#include "report/cli/help.h"

#include <iterator>
#include <string_view>
#include <vector>

#include <zlib.h>

#include "format/base/text.h"
#include "format/version.h"
#include "report/cli/help_groups.h"
#include "report/cli/view_table.h"
#include "report/export/parquet/parquet_tables.h"
#include "report/export/pprof/pprof.h"
#include "report/export/sqlite/sqlite_tables.h"

namespace xpu {
namespace {

// The options that most users need, with room for more of them; help_groups.h has all. CLI11's own
// help lists types and groups, and does not fit on a screen.
constexpr std::string_view kBeforeViews =
    R"(Usage: xpu-report [OPTIONS] [CAPTURE...]
Shows what xpu-record recorded (default capture.xpu); several are shown as one.

Views (choose one; default: a summary; all: --help views)
)";

constexpr std::string_view kAfterViews =
    R"(
Filters (combined with AND; all: --help filters)
  --pid, --tid, --comm, --rank, --host  processes, threads, ranks of a job
  --device, --stream, --kernel REGEX, --api REGEX  GPU work and its calls
  --time FROM-TO        since the start of the recording: 1.5s-2s, 300ms-

Options of --folded and --flamegraph (all: --help stacks)
  --mode MODE           merge, gpu, cpu, idle, off, wall, critical, probe
  --by WHAT             group by thread, process, stream, device, rank or host
  --unit UNIT           us (default), ns, samples (--folded)

Options of --top and --diff (all: --help tables)
  -n, --rows N          rows of each table (0: all; default 20; csv, json: all)
  --table NAMES, --list-tables  print these tables (implies --top); list them
  --format FORMAT, --sort COLUMN  table (default), csv, json; sort order (--top)

Symbols and frames (all: --help symbols)
  --inline, --lines     show inlined functions, file:line
  --python WHICH        merge (default: Python in native stacks), only, native
  --symfs DIR, --debug-dir DIR, --debuginfod  where to find binaries, debug info

General (all: --help general)
  -o, --output FILE     output, compressed if its name ends in .gz
  --no-pager, --strict  use no pager; exit with status 3 if data was lost
  --version, -h, --help  print the version; print this help
  --help GROUP          a group in full: views, filters, stacks, tables,
                        symbols, general, all
)";

std::string ViewLines() {
  std::string text;
  for (const View& view : Views()) {
    if (view.option.empty()) continue;
    const std::string_view value = view.value.empty() ? view.other_capture : view.value;
    const std::string_view space = value.empty() ? "" : " ";
    AppendFormat(text, "  {:<22}{}\n", Format("{}{}{}", view.option, space, value), view.help);
  }
  return text;
}

}  // namespace

std::span<const HelpGroup> HelpGroups() {
  static const std::string views = ViewLines() + std::string(kHelpGroups[0].text);
  static const std::vector<HelpGroup> groups = [] {
    std::vector<HelpGroup> all(std::begin(kHelpGroups), std::end(kHelpGroups));
    all.front().text = views;
    return all;
  }();
  return groups;
}

std::string HelpText() {
  return std::string(kBeforeViews) + ViewLines() + std::string(kAfterViews);
}

std::string ReportVersionText() {
  return Format(
      "xpu-report {}\n"
      "format     {}\n"
      "features   DWARF 2 to 5, inlined functions, names of C++, Rust and Go, Python, NVTX,\n"
      "           debuginfod, import of cupti-text\n"
      "libraries  {}, zlib {}, SQLite {},\n"
      "           Protocol Buffers {}, Thrift {}\n"
      "build      {}\n",
      XPU_VERSION, CaptureFormatVersion(), CaptureLibraries(), ::zlibVersion(), SqliteVersion(),
      ProtobufVersion(), ThriftVersion(), XPU_BUILD);
}

}  // namespace xpu
