// Options of perf record and nsys profile, and their equivalents in xpu-record.
#pragma once

#include "format/base/command_line_option.h"

namespace xpu {

inline constexpr OtherToolOption kOtherToolOptions[] = {
    {"-g",
     "omit it: stacks are always recorded; --call-graph=fp or eh selects how they are unwound"},
    {"--frequency", "-F, --freq HZ: samples per second"},
    {"--sampling-frequency", "-F, --freq HZ: samples per second"},
    {"-t", "CUDA and NVTX are recorded unless --cpu-only or --no-nvtx leave them out"},
    {"--trace", "CUDA and NVTX are recorded unless --cpu-only or --no-nvtx leave them out"},
    {"-s", "CPU samples are taken unless --gpu-only leaves them out"},
    {"--sample", "CPU samples are taken unless --gpu-only leaves them out"},
    {"-b", "--call-graph=fp or eh selects how stacks are unwound"},
    {"--backtrace", "--call-graph=fp or eh selects how stacks are unwound"},
    {"--cudabacktrace", "each launch has its stack; --launch-stacks=none leaves them out"},
    {"--python-backtrace", "Python's frames are recorded; --no-python leaves them out"},
    {"--python-sampling", "Python's frames are recorded; --no-python leaves them out"},
    {"--cuda-memory-usage", "--gpu-memory records allocations"},
    {"--stats", "xpu-report prints the summary, xpu-report --top the tables"},
    {"--export", "xpu-report --chrome-trace, --top --format csv and others write other formats"},
    {"-f", "an existing capture is renamed to FILE.old"},
    {"--force-overwrite", "an existing capture is renamed to FILE.old"},
    {"-y", "-D, --delay TIME: start recording after TIME"},
    {"-w", "the output of the program is always shown"},
    {"--show-output", "the output of the program is always shown"},
    {"-m", "--output-buffer SIZE: buffer for a slow disk or pipe"},
    {"--mmap-pages", "--output-buffer SIZE: buffer for a slow disk or pipe"},
    {"--tid", "-p records all threads of a process; xpu-report --tid shows one"},
    {"--all-cpus", "-a, --all: all processes of the system"},
    {"-C", "all CPUs are recorded; xpu-report --script has the CPU of each sample"},
    {"--cpu", "all CPUs are recorded; xpu-report --script has the CPU of each sample"},
};

// For perf record's --call-graph=dwarf.
inline constexpr char kDwarfHint[] =
    "--call-graph=eh uses the same information without copying the stack; auto (the default) uses "
    "it where possible";

}  // namespace xpu
