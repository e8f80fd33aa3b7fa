// Whether a process has initialized CUDA, by the files that it has open: cuInit opens
// /dev/nvidia-uvm, which NVML alone does not.
#pragma once

#include <cstdint>

namespace xpu {

enum class CudaFile : uint8_t {
  kNone,
  kOfParent,  // open since the fork: the parent had called cuInit, so CUDA does not work in it
  kOwn,
};

// `parent_pid`: 0 if an earlier look found no such file, so that one that is open now is its own.
CudaFile CudaFileOf(uint32_t pid, uint32_t parent_pid);

}  // namespace xpu
