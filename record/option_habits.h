// Options of perf record and nsys profile, and what does the same here.
#pragma once

#include "format/base/command_line_option.h"

namespace xpu {

inline constexpr OptionHabit kRecordHabits[] = {
    {"-g",
     "leave it out: stacks are always recorded; --call-graph=fp or eh says how they are found"},
    {"--frequency", "-F, --freq HZ: samples per second"},
    {"--sampling-frequency", "-F, --freq HZ: samples per second"},
    {"-t", "CUDA and NVTX are recorded unless --cpu-only or --no-nvtx leave them out"},
    {"--trace", "CUDA and NVTX are recorded unless --cpu-only or --no-nvtx leave them out"},
    {"-s", "CPU samples are taken unless --gpu-only leaves them out"},
    {"--sample", "CPU samples are taken unless --gpu-only leaves them out"},
    {"-b", "--call-graph=fp or eh says how stacks are found"},
    {"--backtrace", "--call-graph=fp or eh says how stacks are found"},
    {"--cudabacktrace", "each launch has its stack; --launch-stacks=none leaves them out"},
    {"--python-backtrace", "Python's frames are recorded; --no-python leaves them out"},
    {"--python-sampling", "Python's frames are recorded; --no-python leaves them out"},
    {"--cuda-memory-usage", "--gpu-memory records allocations"},
    {"--stats", "xpu-report prints the summary, xpu-report --top the tables"},
    {"--export", "xpu-report --chrome-trace, --top --format csv and others write other formats"},
    {"-f", "an existing capture is replaced"},
    {"--force-overwrite", "an existing capture is replaced"},
    {"-y", "-D, --delay TIME: begin after that time"},
    {"-w", "the output of the program is always shown"},
    {"--show-output", "the output of the program is always shown"},
    {"-m", "--output-buffer SIZE: what a slow disk may leave waiting"},
    {"--mmap-pages", "--output-buffer SIZE: what a slow disk may leave waiting"},
    {"--tid", "-p records all threads of a process; xpu-report --tid shows one"},
    {"--all-cpus", "-a, --all: all processes of the system"},
    {"-C", "all CPUs are recorded; xpu-report --script has the CPU of each sample"},
    {"--cpu", "all CPUs are recorded; xpu-report --script has the CPU of each sample"},
};

// Of perf record.
inline constexpr char kDwarfHabit[] =
    "--call-graph=eh unwinds by the same information, without copies of the stack; auto (the "
    "default) chooses it wherever it can";

}  // namespace xpu
