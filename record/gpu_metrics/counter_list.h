// What `xpu-record --list-gpu-metrics` prints.
#pragma once

#include <string>

#include "format/base/result.h"
#include "record/options/gpu_metrics_options.h"

namespace xpu {

// The counters that can be recorded, with the GPUs of this machine that have them; without a GPU or
// the right to use its counters, all, and why nothing is known about the GPUs.
std::string GpuMetricList(const GpuMetricsOptions& options);

}  // namespace xpu
