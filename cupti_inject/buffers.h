// The buffers that CUPTI fills with activity records.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cupti_inject/lock.h"

namespace xpu::inject {

// 1200 kernels: small, because CUPTI keeps a buffer back until its last record is finished, and
// what it keeps back dies with the program; large enough that at 300 k launches a second a thread
// asks for one every 4 ms.
inline constexpr size_t kBufferBytes = size_t{256} << 10;

// Zeroed buffers of kBufferBytes in memory of our own. Take() and Give() may be called from any
// thread, also in a callback: they hold a lock of ours for a few instructions and may map memory.
class BufferPool {
 public:
  // nullptr: the system has no memory left.
  uint8_t* Take();
  // The same for no pool, while no session goes on: CUPTI asks on where it cannot be left, and
  // takes back what sessions have left to it. Without a lock, which a forked child may have
  // inherited held.
  static uint8_t* TakeAlone();
  // False: `buffer` is a pool's.
  static bool GiveAlone(uint8_t* buffer);
  static void Unmap(uint8_t* buffer);
  // `used_bytes` from the start may be other than zero.
  void Give(uint8_t* buffer, size_t used_bytes);

  // Returns when the buffer that CUPTI has had for the longest time was taken; UINT64_MAX if it has
  // none.
  uint64_t OldestNs();
  uint32_t outstanding() const { return outstanding_.load(std::memory_order_seq_cst); }

  // Whether CUPTI has it from this pool; else it is from one that was closed.
  bool IsTaken(const uint8_t* buffer);

  // Frees every buffer but those that CUPTI has not given back. `is_finalized`: it never will, and
  // those are freed at the next such Close() of any pool. One thread at a time.
  void Close(bool is_finalized);

 private:
  static constexpr uint32_t kMaxFree = 64;  // 16 MiB; more are given back to the system
  // CUPTI has at most so many; it drops records when its own are 2 GiB.
  static constexpr uint32_t kMaxTaken = 16384;

  static uint8_t* Map();
  bool NoteTaken(uint8_t* buffer);
  void ForgetTaken(const uint8_t* buffer);

  Lock lock_;
  uint8_t* free_[kMaxFree] = {};
  uint32_t free_count_ = 0;
  struct Taken {
    uint8_t* buffer;
    uint64_t since_ns;
  };
  Taken* taken_ = nullptr;  // kMaxTaken of them
  uint32_t taken_count_ = 0;
  std::atomic<uint32_t> outstanding_{0};
};

}  // namespace xpu::inject
