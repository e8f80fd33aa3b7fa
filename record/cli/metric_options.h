// The options of GPU metrics, as words of the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "record/options/options.h"

namespace xpu {

// What they say is parsed later (ParseGpuMetrics).
void AddMetricOptions(CLI::App& app, RecordOptions& options);

}  // namespace xpu
