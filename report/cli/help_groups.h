// What `xpu-report --help GROUP` prints of each group, but for the views, which describe
// themselves.
#pragma once

#include "format/base/help.h"

namespace xpu {

inline constexpr HelpGroup kHelpGroups[] = {
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

}  // namespace xpu
