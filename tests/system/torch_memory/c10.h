// Of PyTorch's libc10 what its CUDA allocator calls: the names are the real ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace c10 {

struct Device {
  int8_t type;  // 0: CPU, 1: CUDA
  int8_t index;
};

#if defined(XPU_TORCH_1_8)
void reportMemoryUsageToProfiler(void* block, int64_t size, Device device);
#elif defined(XPU_TORCH_UNKNOWN)
void reportMemoryUsageToProfiler(void* block, int64_t size, double allocated, Device device);
#else
void reportMemoryUsageToProfiler(void* block, int64_t size, size_t allocated, size_t reserved,
                                 Device device);
#endif

}  // namespace c10

// How often it was called.
extern "C" uint64_t c10_reports();
