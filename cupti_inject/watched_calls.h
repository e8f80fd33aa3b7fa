// Which calls of the CUDA API make the GPU work, or wait for it: those we watch.
#pragma once

#include <cstdint>

namespace xpu::inject {

// `domain` is cupti::kDomainDriver or kDomainRuntime, `name` what cuptiGetCallbackName gives, with
// or without its version suffix. Callback ids mean different functions in different CUDA versions,
// names do not.
bool IsGpuWork(uint32_t domain, const char* name);

}  // namespace xpu::inject
