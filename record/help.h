// What `xpu-record --help` prints.
#pragma once

#include <string_view>

namespace xpu {

// CLI11's own help says of each option what it excludes, and needs two screens.
inline constexpr std::string_view kHelpText =
    R"(Usage: xpu-record [OPTIONS] [--] PROGRAM [ARGUMENTS]
       xpu-record [OPTIONS] -p PID,...|-a [[--] PROGRAM [ARGUMENTS]]
Records CPU samples and GPU activity into a capture, for xpu-report.

Whom and when
  -p, --pid PID,...     processes that run already, and their children
  -a, --all             all processes of the system; a program tells how long
  --user USER           run the program as USER, with no privilege of root's
  --allow-new-privs, --keep-fds  but with setuid; with our open files (--user)
  -d, --duration TIME   end the recording after that time: 5s, 500ms
  -D, --delay TIME      begin after that time; --delay=-1: when --control says
  --control HOW         pause and resume: fifo:CTL[,ACK] or signal (SIGUSR2)
  --capture-range RANGE  only in cudaProfilerApi (Start to Stop) or nvtx:NAME

CPU samples, probes, stacks
  --cpu-only, --gpu-only  no GPU activity; no CPU samples
  -e, --event LIST      sample at these events instead of the CPU clock
  -F, --freq HZ         samples per second and thread (default 99)
  -c, --count N         a sample every N events instead (of a clock: ns)
  --uprobe LIB:FUNC[+OFF], --uretprobe LIB:FUNC  entries of a function, returns
  --kprobe FUNC[+OFF], --kretprobe FUNC  the same in the kernel
  --tracepoint CAT:NAME  passes of a tracepoint of the kernel
  --call-graph HOW      auto (default), eh: by unwind tables, fp: frame pointers
  --no-python           leave the frames of Python out of stacks

GPU activity
  --launch-stacks HOW   stacks of launches: auto (default), inline, uprobe, none
  --cuda-graph-trace WHAT  of a graph's replays: graph (default) or each node
  --gpu-memory          allocations of GPU memory, with their stacks
  --no-nvtx             leave the ranges and marks of NVTX out
  --cupti-lib FILE      the libcupti to use
  --no-inject           load nothing into the program: probes, no GPU times
  --yield-cupti         leave CUPTI to the program's profiler; like --no-inject
  --cuda-lib FILE       a libcudart or libcuda to probe with --no-inject

The capture
  -o, --output FILE     write FILE (default capture.xpu), '-': standard output
  --symbols WHICH       names of code: slice (default: what occurs), full, none
  --rotate-size SIZE    a new file about every SIZE: capture.0001.xpu, ...
  --rotate-keep N       keep the newest N of them
  --max-size SIZE       end the recording when about SIZE was written
  --output-buffer SIZE  what a slow disk or pipe may leave waiting (default 64M)

  --check               tell what works on this machine, record nothing
  -v, --verbose, -q, --quiet  tell more; print errors only
  --version, -h, --help  version and features; this (more in xpu-record(1))
)";

}  // namespace xpu
