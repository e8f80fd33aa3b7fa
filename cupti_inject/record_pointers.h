// The pointers in CUPTI's records: they mean nothing outside the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_inject/cupti_abi.h"

namespace xpu::inject {

// Offset of the pointer to the name, or other text, in a record of this kind; 0: it has none.
constexpr size_t NameOffset(uint32_t kind) {
  switch (kind) {
    case cupti::kKindKernel:
    case cupti::kKindConcurrentKernel:
      return offsetof(cupti::Kernel, name);
    case cupti::kKindDevice:
      return offsetof(cupti::Device, name);
    case cupti::kKindMemory2:
      return offsetof(cupti::MemoryOperation, name);
    case cupti::kKindJit:
      return offsetof(cupti::Jit, cache_path);
    case cupti::kKindName:
      return 24;
    default:
      return 0;
  }
}

// Offset of the correlation id of the call that a record is of; 0: it is of none, or of the state
// of memory, which calls in a pause change too.
constexpr size_t CorrelationOffset(uint32_t kind) {
  switch (kind) {
    case cupti::kKindKernel:
    case cupti::kKindConcurrentKernel:
      return offsetof(cupti::Kernel, correlation_id);
    case cupti::kKindMemcpy:
      return offsetof(cupti::Memcpy, correlation_id);
    case cupti::kKindMemcpy2:
      return offsetof(cupti::MemcpyPeer, correlation_id);
    case cupti::kKindMemset:
      return offsetof(cupti::Memset, correlation_id);
    case cupti::kKindSynchronization:
      return offsetof(cupti::Synchronization, correlation_id);
    case cupti::kKindGraphTrace:
      return offsetof(cupti::GraphTrace, correlation_id);
    case cupti::kKindOverhead:
      return offsetof(cupti::Overhead, correlation_id);
    case cupti::kKindJit:
      return offsetof(cupti::Jit, correlation_id);
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
