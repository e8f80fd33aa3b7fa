// Whether a process has initialized CUDA: cuInit maps pages of each GPU (/dev/nvidia0 and on) that
// it writes to. NVML, as of driver 580, opens the same devices and maps none of them for writing.
#pragma once

#include <cstdint>

namespace xpu {

enum class CudaUse : uint8_t {
  kNone,
  kOfParent,  // mapped since the fork: the parent had called cuInit, so CUDA does not work in it
  kOwn,
};

// `parent_pid`: 0 if an earlier look found no such mapping, so that one that is there now is its
// own.
CudaUse CudaUseOf(uint32_t pid, uint32_t parent_pid);

}  // namespace xpu
