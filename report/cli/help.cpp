#include <iterator>
#include <string_view>

#include <zlib.h>

#include "format/base/text.h"
#include "format/version.h"
#include "report/cli/options.h"
#include "report/export/parquet/parquet_tables.h"
#include "report/export/pprof/pprof.h"
#include "report/export/sqlite/sqlite_tables.h"

namespace xpu {
namespace {

// The text of `xpu-report --help GROUP` for each group, but for the views, which describe
// themselves.
constexpr HelpGroup kHelpGroups[] = {
    {"views", "Views (choose one; default: a summary)",
     R"(  --import cupti-text FILE -o OUT.xpu  convert the output of CUPTI's samples to
                        a capture
)"},
    {"filters", "Filters, combined with AND; lists are separated by commas",
     R"(  --pid PIDS, --tid TIDS  processes and threads
  --comm NAMES          threads or processes with exactly these names
  --rank RANKS, --host NAMES  processes of these ranks of a job, or hosts
  --container NAMES     processes in these containers: names, pods or ids
  --time FROM-TO        what overlaps this time since the start of the
                        recording: 1.5s-2s, 300ms-, -800us
  --device GPUS, --stream STREAMS  work on these GPUs or streams, and the calls
                        that started it
  --kernel REGEX        kernels whose name matches, and the calls that started
                        them; POSIX extended, ignores case
  --api REGEX           CUDA calls whose name matches, and the work that they
                        started
  --nvtx REGEX          what is inside NVTX ranges whose DOMAIN:TEXT matches
  --step WHAT           what a step is: nvtx:REGEX, function:REGEX, or auto
                        (default: what is launched again and again)
  --step-range RANGE    steps by their numbers from 0: 37, 10-20, 100-
  --slow-steps          compare the slowest tenth of the steps with median
                        ones (--flamegraph, --folded, --top)
  --event NAME          samples of this CPU event (default: of the first clock)
  --sample 1/N          use 1 in N CPU samples and 1 in N calls with their work;
                        sums are scaled by N
)"},
    {"stacks", "Options of --folded and --flamegraph",
     R"(  --mode MODE           merge (default: CPU samples, and GPU time under the
                        stack that launched it), gpu, cpu, idle (what the CPU
                        did while a GPU was idle), off (the time in which
                        threads did not run), wall (all time of threads),
                        critical (what decides how long steps take), probe
                        (probe hits), memory (GPU memory in bytes)
  --memory WHICH        of --mode memory: peak (default), growth, left
  --by WHAT             begin each stack with its thread, process, device,
                        stream, rank, host or container (with --diff: see
                        tables)
  --device-tags         name the GPU in the last frame: [GPU0_Kernel]
  --keep-internal-frames  keep frames of libcudart, libcuda, libcupti and xpu
  --nvtx-frames         put the NVTX ranges around a sample or call first
  --unit UNIT           us (default), ns, or samples (--folded)
  --reverse             put the innermost frame first (--folded)
  --title TEXT          title of the page (--flamegraph)
)"},
    {"tables", "Options of --top and --diff",
     R"(  --table NAMES         print only these tables; implies --top
  --list-tables         list all tables
  -n, --rows N          rows of each table; 0: all (default: 20 as text, else
                        all)
  --format FORMAT       table, csv, json (default: by the name of the output
                        file, else table)
  --what-if WHAT=FACTOR  how long steps would take if kernel:REGEX,
                        function:REGEX or thread:REGEX took FACTOR of its
                        time; may be repeated; implies --table what_if
  --sort COLUMN         sort by this column: numbers from the largest, text
                        alphabetically (--top)
  --by WHAT             compare by step, operator, module or path (--diff, which
                        can be given for several captures)
)"},
    {"symbols", "Symbols and frames",
     R"(  --inline              show inlined functions as frames
  --lines               show file and line at the end of each frame
  --offsets             show the offset of each address in its function
  --python WHICH        merge (default: Python functions replace the
                        interpreter's frames), only (no native code), native
                        (the interpreter's own frames)
  --kernel-names WHICH  full (default), short (default in text tables), mangled
  --symfs DIR           look for the files of the recorded machine below DIR
  --debug-dir DIR       look for debug files in DIR instead of /usr/lib/debug
  --debuginfod          query the servers in DEBUGINFOD_URLS for missing files
  --export-symbols DIR  no view: write the capture's symbols as a build-id tree
  --embed-symbols       no view: add symbols of this machine's files to the
                        capture
)"},
    {"general", "General",
     R"(  -i CAPTURE            the same as CAPTURE alone, for users of perf report
  -o, --output FILE     write to FILE, compressed if its name ends in .gz
  --graph-stacks WHICH  show the work of CUDA graph nodes under the stack that
                        launched the graph (launch), that added the node
                        (creation), or both (default)
  --each                write the tables of each capture on its own, several at
                        a time, below -o DIR (--export)
  --correlate HOW       match calls and GPU work by auto (default: CUDA's ids),
                        id, nesting or time[:WINDOW]
  --max-events N        write only the first N slices (--perfetto,
                        --chrome-trace)
  --strict              exit with status 3 if data was lost
  --no-pager            write directly to the terminal
  --version             print the version, the supported features and the
                        libraries
  -h, --help            print the most important options; --help GROUP prints
                        one group in full, --help all every group
)"},
};

// The options that most users need, with room for more of them; kHelpGroups has all. CLI11's own
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
