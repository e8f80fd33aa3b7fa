// The process that reads clocks, power and hardware counters of the GPUs for a recording: the same
// program, started anew (gpu_metrics_source.h).
//
// The driver's libraries are large, may block for long, and keep threads of their own; loaded here,
// they can neither stop the recorder nor change what it holds. The recorder may be root: the helper
// loads only libraries that nobody else can have written (trusted_library.h), never those of the
// recorded program. Its threads: one waits for commands, one reads clocks ten times a second, one
// decodes samples of counters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/options/gpu_metrics_options.h"

namespace xpu {

// What the process is called, which is how `main` knows it.
inline constexpr char kMetricsHelperName[] = "xpu-gpu-metrics";

// What the helper is started for.
struct MetricsHelperSettings {
  bool watch = false;   // read clocks from the beginning; otherwise from the first command on
  bool paused = false;  // until the command to resume
  GpuMetricsOptions options;

  std::vector<std::string> ToArguments() const;
  static MetricsHelperSettings Parse(int argc, const char* const* argv);
};

// Whether this process was started as one. First thing in `main`.
bool IsMetricsHelper(int argc, char** argv);
// Sends packets (metrics_packets.h) on descriptor 0 until the recorder closes it; the status to
// exit with.
int RunMetricsHelper(int argc, char** argv);

}  // namespace xpu
