// Which calls of the CUDA API we watch: those that make the GPU work, wait for it, or put such work
// into a CUDA graph.
#pragma once

#include <cstdint>

namespace xpu::inject {

// `domain` is cupti::kDomainDriver or kDomainRuntime, `name` what cuptiGetCallbackName gives, with
// or without its version suffix. Callback ids mean different functions in different CUDA versions,
// names do not.
bool IsWatched(uint32_t domain, const char* name);
// Whether it allocates or frees memory that the GPU can reach: watched on request.
bool AllocatesMemory(uint32_t domain, const char* name);
// cuProfilerStart and cudaProfilerStart, and their counterparts.
bool StartsProfiler(uint32_t domain, const char* name);
bool StopsProfiler(uint32_t domain, const char* name);

}  // namespace xpu::inject
