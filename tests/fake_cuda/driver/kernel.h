// Kernels as work.
#pragma once

#include "device.h"

namespace xpu::fake_cuda {

// Before a launch: module and function are loaded at their first use.
void LoadFunction(CUfunction function, bool captured);

// `params` as cuLaunchKernel takes them: read for the duration only.
Work KernelWork(CUfunction function, const CUlaunchConfig& config, void** params);

// A configuration of the dimensions alone.
CUlaunchConfig LaunchConfig(const unsigned (&grid)[3], const unsigned (&block)[3],
                            unsigned shared_bytes, CUstream stream);

// Puts the kernel into config.hStream.
CUresult LaunchKernel(CUfunction function, const CUlaunchConfig& config, void** params);

// Runs `function` on another thread when the stream's work so far has ended.
CUresult LaunchHostFunction(CUstream stream, CUhostFn function, void* user_data);

}  // namespace xpu::fake_cuda
