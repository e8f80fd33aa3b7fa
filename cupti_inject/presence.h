// Which of the program's threads are inside one of our callbacks: the end of a session frees its
// memory when none is.
//
// Each thread has a slot that it alone writes, in a cache line of its own, with plain stores: a
// fence or a locked instruction in every callback would cost more than the rest of the entry. What
// x86 may delay is the store "I am inside" past the load "the session is active", and only for as
// long as the store buffer holds it. So who ends a session first says that it is not active, sleeps
// kSettleNs, then looks at the slots: whoever still saw an active session is seen inside.
#pragma once

#include <atomic>
#include <cstdint>

namespace xpu::inject {

// Whether the process has that thread.
bool IsAlive(uint32_t tid);
// Whether all threads of the process have ended but the calling one, which is not its first. False
// where /proc does not say so.
bool IsLastThread();

struct alignas(64) ThreadSlot {
  std::atomic<uint32_t> owner{0};   // tid; 0: free
  std::atomic<uint32_t> inside{0};  // how many of our functions the thread is in: they may nest
  std::atomic<uint32_t> calls{0};   // 1: it is in a call of the program's that is recorded
};

class Presence {
 public:
  static constexpr uint32_t kSlots = 1024;
  static constexpr uint32_t kSharedSlots = 16;
  // A store buffer drains in microseconds, at the latest when its CPU does something else.
  static constexpr uint64_t kSettleNs = 2'000'000;

  // A slot for the calling thread, for the rest of its life: a free one, or that of a thread that
  // has ended. Where there is none it shares one of the last.
  ThreadSlot* Claim(uint32_t tid);
  bool IsShared(const ThreadSlot& slot) const { return &slot >= &slots_[kSlots]; }

  // In the sense of the slots, without those whose threads have died. After kSettleNs.
  bool IsAnyInside() const { return Any(&ThreadSlot::inside); }
  bool IsAnyInCall() const { return Any(&ThreadSlot::calls); }

  // Gives back the slots of threads that have ended; no thread is in a call that was recorded.
  void BeginSession();
  // In a forked child, which has but one thread.
  void Reset();

 private:
  static constexpr uint32_t kLooksForDead = 32;

  bool Any(std::atomic<uint32_t> ThreadSlot::*member) const;
  ThreadSlot* TakeOverDead(uint32_t tid);

  ThreadSlot slots_[kSlots + kSharedSlots];
  std::atomic<uint32_t> used_{0};  // slots before this one have been claimed at some time
};

}  // namespace xpu::inject
