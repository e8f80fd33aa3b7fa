// The pointers in CUPTI's records: they mean nothing outside the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_inject/cupti_abi.h"

namespace xpu::inject {

// Offset of the pointer to the name in a record of this kind; 0: it has none.
constexpr size_t NameOffset(uint32_t kind) {
  switch (kind) {
    case cupti::kKindKernel:
    case cupti::kKindConcurrentKernel:
      return offsetof(cupti::Kernel, name);
    case cupti::kKindDevice:
      return offsetof(cupti::Device, name);
    case cupti::kKindMemory2:
      return offsetof(cupti::MemoryOperation, name);
    case cupti::kKindName:
      return 24;
    default:
      return 0;
  }
}

// Offset of another pointer in a record of this kind; 0: it has none.
constexpr size_t OtherPointerOffset(uint32_t kind) {
  switch (kind) {
    case cupti::kKindKernel:
    case cupti::kKindConcurrentKernel:
      return offsetof(cupti::Kernel, access_policy_window);
    case cupti::kKindOverhead:
      return offsetof(cupti::Overhead, data);
    case cupti::kKindMemory2:
      return offsetof(cupti::MemoryOperation, source);
    default:
      return 0;
  }
}

}  // namespace xpu::inject
