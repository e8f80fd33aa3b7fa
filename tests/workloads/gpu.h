// How the workloads reach the GPU. The same sources compile with nvcc for a real one, and as plain
// C++ against the simulated CUDA of tests/fake_cuda, where kernels are host functions that nothing
// runs and whose names are found with dladdr (hence -rdynamic, and no kernel may be static).
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <utility>

#include <cuda_runtime.h>

#include "json_line.h"
#include "puppet.h"
#include "tally.h"

#ifndef __CUDACC__
// cuda_runtime.h of the toolkit would turn it into an attribute that g++ does not know.
#undef __global__
#define __global__
#endif

namespace gpu {

inline void Check(cudaError_t result, const char* call, const char* file, int line) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(result));
  std::exit(1);
}

// Copies of a kernel's arguments in its parameter types, and the pointers cudaLaunchKernel wants.
template <typename... Params>
class PackedArgs {
 public:
  template <typename... Args>
  explicit PackedArgs(void (* /*kernel*/)(Params...), Args... args)
      : values_(static_cast<Params>(args)...) {
    Fill(std::index_sequence_for<Params...>());
  }
  PackedArgs(const PackedArgs&) = delete;
  PackedArgs& operator=(const PackedArgs&) = delete;

  void** pointers() { return pointers_.data(); }

 private:
  template <size_t... kIndex>
  void Fill(std::index_sequence<kIndex...> /*indices*/) {
    ((pointers_[kIndex] = &std::get<kIndex>(values_)), ...);
  }

  std::tuple<Params...> values_;
  std::array<void*, sizeof...(Params) + 1> pointers_{};  // + 1: never empty
};

template <typename... Params, typename... Args>
PackedArgs(void (*)(Params...), Args...) -> PackedArgs<Params...>;

#ifdef __CUDACC__
// Keeps the kernel busy for `ns` of the GPU's nanosecond clock: then its duration does not depend
// on the card, and event times can be compared with sums of durations.
__device__ inline void SpinFor(unsigned long long ns) {
  unsigned long long start;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  unsigned long long now = start;
  while (now - start < ns) asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
}
#endif

}  // namespace gpu

#define XPU_CUDA(call) gpu::Check(call, #call, __FILE__, __LINE__)

// A macro, because an inlined function would be a frame of its own in reports that expand inlines:
// the function that holds XPU_LAUNCH is the direct caller of cudaLaunchKernel in every view. Counts
// into `tally` under `path`. Not <<<>>>, which g++ cannot read.
#define XPU_LAUNCH_UNCOUNTED(kernel, grid, block, stream, ...)                    \
  do {                                                                            \
    gpu::PackedArgs packed_args(kernel __VA_OPT__(, ) __VA_ARGS__);               \
    XPU_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, \
                              packed_args.pointers(), 0, stream));                \
  } while (false)
#define XPU_LAUNCH(tally, path, kernel, grid, block, stream, ...)                 \
  do {                                                                            \
    XPU_LAUNCH_UNCOUNTED(kernel, grid, block, stream __VA_OPT__(, ) __VA_ARGS__); \
    (tally)->CountLaunch(path, #kernel);                                          \
  } while (false)
