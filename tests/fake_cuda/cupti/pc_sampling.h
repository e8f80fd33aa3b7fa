// Samples of program counters: the kernels of a context have some where sampling is on.
#pragma once

#include <string>

#include "../hooks.h"

namespace xpu::fake_cupti {

// XPU_FAKE_CUBIN: the code of every module; empty: none is known.
const std::string& ModuleCode();
// As after XPU_FAKE_SAMPLES_FAIL.
bool SamplesHaveFailed();
// A context is being destroyed: CUPTI has no samples of it any more.
void EndSampling(CUcontext context);
// A kernel was launched.
void SampleKernel(const fake_cuda::Activity& kernel);

}  // namespace xpu::fake_cupti
