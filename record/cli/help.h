// What `xpu-record --help` prints.
#pragma once

#include <string_view>

namespace xpu {

// CLI11's own help lists for each option what it excludes, and fills two screens.
inline constexpr std::string_view kHelpText =
    R"(Usage: xpu-record [OPTIONS] [--] PROGRAM [ARGUMENTS]
       xpu-record [OPTIONS] -p PID,...|-a [[--] PROGRAM [ARGUMENTS]]
Records CPU samples and GPU activity into a capture for xpu-report.

Targets and control
  -p, --pid PID,...     record running processes and their children
  -a, --all             record all processes; with a PROGRAM, until it exits
  --user USER           run the program as USER, without root's privileges
  --allow-new-privs, --keep-fds  with --user: allow setuid; inherit open files
  -d, --duration TIME   stop recording after TIME: 5s, 500ms
  -D, --delay TIME      start recording after TIME; -1: wait for --control
  --control HOW         pause and resume: fifo:CTL[,ACK] or signal (SIGUSR2)
  --capture-range RANGE  record only within cudaProfilerApi or nvtx:NAME ranges

CPU samples, probes, stacks
  --cpu-only, --gpu-only  record no GPU activity; take no CPU samples
  -e, --event LIST      sample on these events instead of the CPU clock
  -F, --freq HZ         samples per second per thread (default 99)
  -c, --count N         sample every N events instead (clocks: every N ns)
  --uprobe LIB:FUNC[+OFF], --uretprobe LIB:FUNC  function entries; returns
  --kprobe FUNC[+OFF], --kretprobe FUNC  the same for kernel functions
  --tracepoint CAT:NAME  hits of a kernel tracepoint
  --call-graph HOW      auto (default), eh (unwind tables), fp (frame pointers)
  --no-python           leave Python frames out of stacks

GPU activity
  --launch-stacks HOW   how to take them: auto (default), inline, uprobe, none
  --cuda-graph-trace WHAT  graph (default), node: a record per replay, per node
  --gpu-memory          record GPU memory allocations, with their stacks
  --no-nvtx             do not record NVTX ranges and marks
  --cupti-lib FILE      use this libcupti
  --no-inject           load nothing into the program: probes, no GPU times
  --yield-cupti         leave CUPTI to the program's profiler; like --no-inject
  --cuda-lib FILE       libcudart or libcuda to probe with --no-inject

Output
  -o, --output FILE     default capture.xpu; '-' is standard output
  --symbols WHICH       slice (default: only functions in stacks), full, none
  --rotate-size SIZE    start a new file every SIZE: capture.0001.xpu, ...
  --rotate-keep N       keep only the newest N of these files
  --max-size SIZE       stop recording after about SIZE has been written
  --output-buffer SIZE  buffer for a slow disk or pipe (default 64M)

  --check               check what works on this machine; record nothing
  -v, --verbose, -q, --quiet  print more; print only errors
  --version, -h, --help  version and features; this help (see xpu-record(1))
)";

}  // namespace xpu
