// The kernel that a launch names, for launches that only a probe saw.
#pragma once

#include <string>

#include "report/analysis/analysis.h"
#include "report/analysis/gpu_names.h"

namespace xpu {

// Empty: not known. Launches through the runtime name the kernel by the address of a function of
// the program; handles of the driver say nothing.
std::string LaunchedKernel(Analysis& analysis, const GpuNames& names, const Launch& launch);

}  // namespace xpu
