#include "cupti_inject/buffers.h"

#include <cstring>

#include <sys/mman.h>

#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {

uint8_t* BufferPool::Map() { return static_cast<uint8_t*>(MapZeroed(kBufferBytes)); }

uint8_t* BufferPool::Take() {
  uint8_t* buffer = nullptr;
  {
    const Locked locked(lock_);
    if (free_count_ > 0) buffer = free_[--free_count_];
  }
  if (buffer == nullptr) buffer = Map();
  if (buffer == nullptr) return nullptr;
  outstanding_.fetch_add(1, std::memory_order_seq_cst);
  return buffer;
}

void BufferPool::Give(uint8_t* buffer, size_t used_bytes) {
  std::memset(buffer, 0, used_bytes < kBufferBytes ? used_bytes : kBufferBytes);
  outstanding_.fetch_sub(1, std::memory_order_relaxed);
  {
    const Locked locked(lock_);
    if (free_count_ < kMaxFree) {
      free_[free_count_++] = buffer;
      return;
    }
  }
  munmap(buffer, kBufferBytes);
}

}  // namespace xpu::inject
