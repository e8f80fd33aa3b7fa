// What `xpu-record --help` prints.
#pragma once

#include <string_view>

namespace xpu {

// The options that most users need, with space for a few more; help_groups.h has all of them.
// CLI11's own help was rejected: it lists for each option what it excludes, and fills two screens.
inline constexpr std::string_view kHelpText =
    R"(Usage: xpu-record [OPTIONS] [--] PROGRAM [ARGUMENTS]
       xpu-record [OPTIONS] -p PID,...|-a [[--] PROGRAM [ARGUMENTS]]
Records CPU samples and GPU activity into a capture for xpu-report.

Targets and control (all: --help control)
  -p, --pid PID,...     record running processes, also their GPU activity
  -a, --all             record all processes; with a PROGRAM, until it exits
  --user USER           run the program as USER, without root's privileges
  -d, --duration TIME   stop recording after TIME: 5s, 500ms
  -D, --delay TIME      start recording after TIME; -1: wait for --control
  --control HOW         pause and resume: fifo:CTL[,ACK] or signal (SIGUSR2)

CPU samples, probes, stacks (all: --help cpu)
  --cpu-only, --gpu-only  record no GPU activity; take no CPU samples
  -e, --event LIST      sample on these events instead of the CPU clock
  -F, --freq HZ         samples per second of CPU time (default 99)
  --uprobe LIB:FUNC, --tracepoint CAT:NAME  record each hit, with its stack

GPU activity (all: --help gpu)
  --cuda-graph-trace WHAT  graph (default), node: a record per replay, per node
  --gpu-memory, --gpu-metrics  record GPU memory allocations; hardware counters
  --gpu-samples         sample instructions of kernels, and what they wait for
  --no-inject           load nothing into the program: no GPU times
  --yield-cupti         leave CUPTI to the program's profiler; no GPU times

Output (all: --help output)
  -o, --output FILE     default capture.xpu; '-' is standard output
  --symbols WHICH       slice (default: only functions in stacks), full, none
  --rotate-size SIZE    start a new file every SIZE: capture.0001.xpu, ...
  --rotate-keep N       keep only the newest N of these files

General (all: --help general)
  --check               check what works on this machine; record nothing
  -v, --verbose, -q, --quiet  print more; print only errors
  --version, -h, --help  print the version; print this help
  --help GROUP          a group in full: control, cpu, gpu, output, general, all
)";

}  // namespace xpu
