#include "cupti_inject/buffers.h"

#include <cstring>

#include <sys/mman.h>

#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {
namespace {

// A thread has one or two at a time. What is beyond is never freed.
constinit std::atomic<uint8_t*> g_alone[256];

}  // namespace

uint8_t* BufferPool::Map() { return static_cast<uint8_t*>(MapZeroed(kBufferBytes)); }

void BufferPool::Unmap(uint8_t* buffer) { munmap(buffer, kBufferBytes); }

uint8_t* BufferPool::TakeAlone() {
  uint8_t* buffer = Map();
  for (std::atomic<uint8_t*>& place : g_alone) {
    uint8_t* free = nullptr;
    if (buffer == nullptr || place.compare_exchange_strong(free, buffer)) break;
  }
  return buffer;
}

bool BufferPool::GiveAlone(uint8_t* buffer) {
  for (std::atomic<uint8_t*>& place : g_alone) {
    uint8_t* taken = buffer;
    if (!place.compare_exchange_strong(taken, nullptr)) continue;
    Unmap(buffer);
    return true;
  }
  return false;
}

uint8_t* BufferPool::Take() {
  uint8_t* buffer = nullptr;
  {
    const Locked locked(lock_);
    if (free_count_ > 0) buffer = free_[--free_count_];
  }
  if (buffer == nullptr) buffer = Map();
  if (buffer == nullptr) return nullptr;
  if (!NoteTaken(buffer)) {
    munmap(buffer, kBufferBytes);
    return nullptr;
  }
  outstanding_.fetch_add(1, std::memory_order_seq_cst);
  return buffer;
}

void BufferPool::Give(uint8_t* buffer, size_t used_bytes) {
  std::memset(buffer, 0, used_bytes < kBufferBytes ? used_bytes : kBufferBytes);
  outstanding_.fetch_sub(1, std::memory_order_relaxed);
  {
    const Locked locked(lock_);
    ForgetTaken(buffer);
    if (free_count_ < kMaxFree) {
      free_[free_count_++] = buffer;
      return;
    }
  }
  munmap(buffer, kBufferBytes);
}

bool BufferPool::NoteTaken(uint8_t* buffer) {
  const Locked locked(lock_);
  if (taken_ == nullptr) {
    taken_ = static_cast<Taken*>(MapZeroed(kMaxTaken * sizeof(*taken_)));
  }
  if (taken_ == nullptr || taken_count_ == kMaxTaken) return false;
  taken_[taken_count_++] = {buffer, MonotonicNs()};
  return true;
}

uint64_t BufferPool::OldestNs() {
  const Locked locked(lock_);
  uint64_t oldest_ns = UINT64_MAX;
  for (uint32_t i = 0; i < taken_count_; ++i) {
    if (taken_[i].since_ns < oldest_ns) oldest_ns = taken_[i].since_ns;
  }
  return oldest_ns;
}

bool BufferPool::IsTaken(const uint8_t* buffer) {
  const Locked locked(lock_);
  for (uint32_t i = taken_count_; i > 0; --i) {
    if (taken_[i - 1].buffer == buffer) return true;
  }
  return false;
}

// There are some tens of them, and the newest come back first as often as not.
void BufferPool::ForgetTaken(const uint8_t* buffer) {
  for (uint32_t i = taken_count_; i > 0; --i) {
    if (taken_[i - 1].buffer != buffer) continue;
    taken_[i - 1] = taken_[--taken_count_];
    return;
  }
}

void BufferPool::Close(bool is_finalized) {
  static constinit Taken* left = nullptr;  // by an earlier pool
  static constinit uint32_t left_count = 0;
  if (is_finalized) {
    for (uint32_t i = 0; i < left_count; ++i) munmap(left[i].buffer, kBufferBytes);
    if (left != nullptr) munmap(left, kMaxTaken * sizeof(*left));
    left = taken_;
    left_count = taken_count_;
  } else if (taken_ != nullptr) {
    munmap(taken_, kMaxTaken * sizeof(*taken_));
  }
  taken_ = nullptr;
  taken_count_ = 0;
  for (uint32_t i = 0; i < free_count_; ++i) munmap(free_[i], kBufferBytes);
  free_count_ = 0;
  outstanding_.store(0, std::memory_order_relaxed);
}

}  // namespace xpu::inject
