// Locks and waiting inside the program's process: our own, on futexes, so that no lock of the
// program or of its C library is ever taken and a waiting thread uses no CPU.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/base/time_namespace.h"

namespace xpu::inject {

// As the kernel has it, also in a time namespace.
inline uint64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec) -
         MonotonicOffsetNs();
}

inline void SleepNs(uint64_t duration_ns) {
  timespec rest{static_cast<time_t>(duration_ns / 1'000'000'000),
                static_cast<long>(duration_ns % 1'000'000'000)};
  const int saved_errno = errno;
  while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
  }
  errno = saved_errno;
}

inline constexpr uint64_t kForever = UINT64_MAX;

// Returns when `word` is not `expected`, after `timeout_ns`, or for no reason.
inline void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ns) {
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  const int saved_errno = errno;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected,
          timeout_ns == kForever ? nullptr : &timeout, nullptr, 0);
  errno = saved_errno;
}

inline void FutexWakeAll(std::atomic<uint32_t>& word) {
  const int saved_errno = errno;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr,
          nullptr, 0);
  errno = saved_errno;
}

// Something that happens once or again and again: waiters see every Notify() after their Ticket().
class Signal {
 public:
  uint32_t Ticket() const { return count_.load(std::memory_order_acquire); }

  void Notify() {
    count_.fetch_add(1, std::memory_order_release);
    FutexWakeAll(count_);
  }

  void Wait(uint32_t ticket, uint64_t timeout_ns) { FutexWait(count_, ticket, timeout_ns); }

 private:
  std::atomic<uint32_t> count_{0};
};

// Held for microseconds. Not recursive.
class Lock {
 public:
  void Acquire() {
    uint32_t state = kFree;
    if (state_.compare_exchange_strong(state, kHeld, std::memory_order_acquire)) return;
    while (state_.exchange(kContended, std::memory_order_acquire) != kFree) {
      FutexWait(state_, kContended, kForever);
    }
  }

  // False: another thread holds it.
  bool TryAcquire() {
    uint32_t state = kFree;
    return state_.compare_exchange_strong(state, kHeld, std::memory_order_acquire);
  }

  void Release() {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) FutexWakeAll(state_);
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kContended = 2;
  std::atomic<uint32_t> state_{kFree};
};

class Locked {
 public:
  explicit Locked(Lock& lock) : lock_(lock) { lock_.Acquire(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { lock_.Release(); }

 private:
  Lock& lock_;
};

}  // namespace xpu::inject
