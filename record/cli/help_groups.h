// What `xpu-record --help GROUP` prints.
#pragma once

#include "format/base/help.h"

namespace xpu {

inline constexpr HelpGroup kHelpGroups[] = {
    {"control", "Targets and control",
     R"(  -p, --pid PID,...     record these running processes, with their GPU activity,
                        and the processes that they start from then on
  --no-attach           with -p: load nothing into the processes, and record no
                        GPU activity
  -a, --all             record all processes of the system; with a PROGRAM,
                        until it exits
  --attach              with -a: also the GPU activity of all processes that use
                        CUDA, now or later
  --user USER           run the program as USER, without root's privileges and
                        with no way to regain them; only for root
  --allow-new-privs     with --user: allow setuid programs and file capabilities
  --keep-fds            with --user: let the program inherit all open files
  -d, --duration TIME   stop recording after TIME: 5s, 500ms, 2m; the program
                        goes on at full speed, and xpu-record waits for it
  -D, --delay TIME      start recording after TIME; -1: wait for --control
  --every TIME          record one window every TIME, not all the time;
                        between windows running programs are left alone
  --window TIME         with --every: how long each window is
  --control HOW         pause and resume the recording from outside:
                        fifo:CTL[,ACK] reads commands (enable, disable, stop)
                        from a FIFO, signal uses SIGUSR2
  --capture-range RANGE  record only within ranges of the program:
                        cudaProfilerApi (cudaProfilerStart to cudaProfilerStop)
                        or nvtx:NAME[@DOMAIN]
)"},
    {"cpu", "CPU samples, probes, stacks",
     R"(  --cpu-only            record no GPU activity, and load nothing into the
                        program
  -e, --event LIST      sample on these events instead of the CPU clock; --check
                        lists those of this machine, NAME:u counts only user
                        code
  -F, --freq HZ         samples per second of CPU time (default 99)
  -c, --count N         sample every N events instead (clocks: every N ns); -c 1
                        records every event
  --off-cpu             record when threads do not run, why, and their stacks
  --off-cpu-min TIME    with --off-cpu: sum shorter times per thread, without
                        stacks (default 10us)
  --uprobe LIB:FUNC[+OFF]  record each entry to a function of a program or
                        library, with its stack
  --uretprobe LIB:FUNC  record each return from it, with its return value
  --kprobe FUNC[+OFF]   record each entry to a kernel function
  --kretprobe FUNC      record each return from it
  --tracepoint CAT:NAME  record each hit of a kernel tracepoint
  --call-graph HOW      how stacks are unwound: eh (unwind tables, no frame
                        pointers needed), fp (frame pointers), auto (default: eh
                        where the kernel supports it)
  --no-python           leave Python frames out of stacks
)"},
    {"gpu", "GPU activity",
     R"(  --gpu-only            take no CPU samples; works for any user
  --launch-stacks HOW   how the CPU stack of a launch is taken: inline (by the
                        injected library), uprobe (by the kernel), auto
                        (default: inline where the library is loaded), none
  --cuda-graph-trace WHAT  graph (default): one record per replay of a CUDA
                        graph; node (default after an attach): one per kernel,
                        with the code that added it, which makes replays of
                        short kernels up to 1.9 times as long
  --gpu-memory          record each allocation and release of GPU memory, with
                        its stack
  --gpu-samples         sample which instructions kernels execute, and what
                        their warps wait for; excludes --gpu-metrics
  --gpu-sample-period N  with --gpu-samples: a sample every N cycles of each
                        multiprocessor, a power of two (default 262144)
  --gpu-sample-buffer SIZE  with --gpu-samples: how much memory of each GPU
                        holds samples (default 64M)
  --gpu-metrics         record hardware counters of the GPUs over time: how busy
                        multiprocessors, tensor cores and memory are; needs
                        root and an installed CUDA toolkit
  --gpu-metric-set LIST  sets of counters (default sm,tensor,dram), or counters
  --gpu-metric-interval TIME  one sample of them every TIME (default 200us)
  --list-gpu-metrics    list the counters, and which of them the GPUs have
  --no-gpu-clocks       do not record clocks, power and temperature of GPUs
  --no-nvtx             do not record NVTX ranges and marks
  --cupti-lib FILE      the libcupti to use in programs that have not loaded one
  --no-inject           load nothing into the program: launches are recorded by
                        probes on libcudart and libcuda, without GPU times
  --yield-cupti         leave CUPTI to the program's own profiler; implies
                        --no-inject
  --cuda-lib FILE       with --no-inject: a libcudart, libcuda or program to
                        probe
)"},
    {"output", "Output",
     R"(  -o, --output FILE     the capture (default capture.xpu); an existing one is
                        renamed to FILE.old; '-' is standard output; in DIR/ it
                        is named by host, rank and process
  --sources WHICH       source text that is stored in the capture: none
                        (default), hit: the lines around those that occur in
                        stacks and in kernels with samples
  --symbols WHICH       symbols that are stored in the capture: slice (default:
                        the functions in its stacks), full (default with
                        --sources=hit: also their lines and inlined functions),
                        none
  --rotate-size SIZE    start a new file every SIZE: capture.0001.xpu, ...
  --rotate-keep N       keep only the newest N of these files
  --max-size SIZE       stop recording after about SIZE has been written; the
                        program goes on
  --label KEY=VALUE     label the capture, for queries over many captures:
                        commit=1a2b3c
  --output-buffer SIZE  data that may wait in memory for a slow disk or pipe
                        (default 64M)
)"},
    {"general", "General",
     R"(  --check               check what works on this machine and how to fix the
                        rest; with other options: for a recording with these
                        options
  --format HOW          with --check: text (default) or json
  -v, --verbose         print what is found in the program's processes
  -q, --quiet           print only errors
  --version             print the version, the supported features and the
                        libraries
  -h, --help            print the most important options; --help GROUP prints
                        one group in full, --help all every group
)"},
};

}  // namespace xpu
