// The part of the toolkit's header that the workloads need.
#pragma once

#include "cuda_runtime.h"

extern "C" {

cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

}  // extern "C"
