#include "cupti_inject/watched_calls.h"

#include <cstring>

#include "cupti_inject/cupti_abi.h"

namespace xpu::inject {
namespace {

// Prefixes: the names go on with variants (_ptsz, _ptds, _v2, Async, 2D, ToSymbol, ...) that all do
// the same kind of work.
constexpr const char* kDriverPrefixes[] = {
    "cuLaunch",  // kernels of all kinds, host functions
    "cuMemcpy",           "cuMemset",
    "cu64Memcpy",  // of 32-bit times; CUPTI still names them
    "cuCtxSynchronize",   "cuStreamSynchronize",
    "cuEventSynchronize", "cuStreamWaitEvent",
    "cuGraphLaunch",
};
constexpr const char* kRuntimePrefixes[] = {
    "cudaLaunch",
    "__cudaLaunchKernel",  // what <<<>>> compiles to since CUDA 13
    "cudaMemcpy",
    "cudaMemset",
    "cudaDeviceSynchronize",
    "cudaThreadSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaStreamWaitEvent",
    "cudaGraphLaunch",
};
// Calls that allocate or free memory which the GPU can reach.
constexpr const char* kDriverMemoryPrefixes[] = {"cuMemAlloc", "cuMemFree", "cuMemHostAlloc"};
constexpr const char* kRuntimeMemoryPrefixes[] = {"cudaMalloc", "cudaFree", "cudaHostAlloc"};
// The rest of the names of calls that make nodes of graphs or change what they do; after "cuGraph"
// and "cudaGraph".
constexpr const char* kGraphPrefixes[] = {"Add", "Clone", "Instantiate", "ExecUpdate"};
constexpr char kSetParameters[] = "SetParams";

// What follows `prefix` in `name`; nullptr: it does not begin with it.
const char* AfterPrefix(const char* prefix, const char* name) {
  const size_t length = std::strlen(prefix);
  return std::strncmp(name, prefix, length) == 0 ? name + length : nullptr;
}

template <size_t N>
bool HasPrefixOf(const char* const (&prefixes)[N], const char* name) {
  for (const char* prefix : prefixes) {
    if (AfterPrefix(prefix, name) != nullptr) return true;
  }
  return false;
}

bool ChangesGraph(const char* prefix, const char* name) {
  const char* rest = AfterPrefix(prefix, name);
  return rest != nullptr &&
         (HasPrefixOf(kGraphPrefixes, rest) || std::strstr(rest, kSetParameters) != nullptr);
}

}  // namespace

bool IsWatched(uint32_t domain, const char* name) {
  if (name == nullptr) return false;
  if (domain == cupti::kDomainDriver) {
    return HasPrefixOf(kDriverPrefixes, name) || ChangesGraph("cuGraph", name);
  }
  if (domain == cupti::kDomainRuntime) {
    return HasPrefixOf(kRuntimePrefixes, name) || ChangesGraph("cudaGraph", name);
  }
  return false;
}

bool StartsProfiler(uint32_t domain, const char* name) {
  const bool runtime = domain == cupti::kDomainRuntime;
  return name != nullptr && AfterPrefix(runtime ? "cudaProfilerStart" : "cuProfilerStart", name);
}

bool StopsProfiler(uint32_t domain, const char* name) {
  const bool runtime = domain == cupti::kDomainRuntime;
  return name != nullptr && AfterPrefix(runtime ? "cudaProfilerStop" : "cuProfilerStop", name);
}

bool AllocatesMemory(uint32_t domain, const char* name) {
  if (name == nullptr) return false;
  if (domain == cupti::kDomainDriver) return HasPrefixOf(kDriverMemoryPrefixes, name);
  return domain == cupti::kDomainRuntime && HasPrefixOf(kRuntimeMemoryPrefixes, name);
}

}  // namespace xpu::inject
