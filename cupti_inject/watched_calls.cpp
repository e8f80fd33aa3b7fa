#include "cupti_inject/gpu_work.h"

#include <cstring>

#include "cupti_inject/cupti_abi.h"

namespace xpu::inject {
namespace {

// Prefixes: the names go on with variants (_ptsz, _ptds, _v2, Async, 2D, ToSymbol, ...) that all do
// the same kind of work. cudaGraphAddMemcpyNode and its like do not begin with these.
constexpr const char* kDriverPrefixes[] = {
    "cuLaunch",  // kernels of all kinds, host functions
    "cuGraphLaunch",      "cuMemcpy",
    "cuMemset",
    "cu64Memcpy",  // of 32-bit times; CUPTI still names them
    "cuCtxSynchronize",   "cuStreamSynchronize",
    "cuEventSynchronize",
};
constexpr const char* kRuntimePrefixes[] = {
    "cudaLaunch",
    "__cudaLaunchKernel",  // what <<<>>> compiles to since CUDA 13
    "cudaGraphLaunch",
    "cudaMemcpy",
    "cudaMemset",
    "cudaDeviceSynchronize",
    "cudaThreadSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
};

template <size_t N>
bool HasPrefixOf(const char* const (&prefixes)[N], const char* name) {
  for (const char* prefix : prefixes) {
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) return true;
  }
  return false;
}

}  // namespace

bool IsGpuWork(uint32_t domain, const char* name) {
  if (name == nullptr) return false;
  if (domain == cupti::kDomainDriver) return HasPrefixOf(kDriverPrefixes, name);
  if (domain == cupti::kDomainRuntime) return HasPrefixOf(kRuntimePrefixes, name);
  return false;
}

}  // namespace xpu::inject
