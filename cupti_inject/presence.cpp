#include "cupti_inject/presence.h"

#include <cerrno>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace xpu::inject {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;  // no thread has this number, nor is it said to be dead

}  // namespace

bool IsAlive(uint32_t tid) {
  const int saved_errno = errno;
  const bool alive =
      syscall(SYS_tgkill, static_cast<long>(getpid()), static_cast<long>(tid), 0L) == 0 ||
      errno != ESRCH;
  errno = saved_errno;
  return alive;
}

bool IsLastThread() {
  const int saved_errno = errno;
  struct stat status {};
  constexpr nlink_t kLinksOfTwoThreads = 4;  // two of the directory, one of each thread
  // A first thread that has ended stays as a zombie, without namespaces. This is asked with nothing
  // but stat, which neither hangs nor needs a descriptor, and which sandboxes allow for stdio.
  const bool is_last = stat("/proc/self/task", &status) == 0 &&
                       status.st_nlink == kLinksOfTwoThreads &&
                       stat("/proc/self/ns/mnt", &status) != 0 && errno == ENOENT &&
                       stat("/proc/thread-self/ns/mnt", &status) == 0;
  errno = saved_errno;
  return is_last;
}

ThreadSlot* Presence::Claim(uint32_t tid) {
  for (uint32_t i = 0; i < kSlots; ++i) {
    uint32_t free = 0;
    if (slots_[i].owner.load(std::memory_order_relaxed) != 0 ||
        !slots_[i].owner.compare_exchange_strong(free, tid)) {
      continue;
    }
    uint32_t used = used_.load();
    while (used <= i && !used_.compare_exchange_weak(used, i + 1)) {
    }
    return &slots_[i];
  }
  if (ThreadSlot* slot = TakeOverDead(tid)) return slot;
  return &slots_[kSlots + tid % kSharedSlots];
}

// Threads that come later have other numbers, and look at other slots.
ThreadSlot* Presence::TakeOverDead(uint32_t tid) {
  for (uint32_t i = 0; i < kLooksForDead; ++i) {
    ThreadSlot& slot = slots_[(tid * kLooksForDead + i) % kSlots];
    uint32_t owner = slot.owner.load();
    if (owner != 0 && IsAlive(owner)) continue;
    if (!slot.owner.compare_exchange_strong(owner, tid)) continue;
    slot.inside.store(0);
    slot.calls.store(0);
    return &slot;
  }
  return nullptr;
}

bool Presence::Any(std::atomic<uint32_t> ThreadSlot::*member) const {
  const auto is_set = [&](const ThreadSlot& slot) {
    return (slot.*member).load(std::memory_order_acquire) != 0;
  };
  for (uint32_t i = 0, used = used_.load(); i < used; ++i) {
    if (is_set(slots_[i]) && IsAlive(slots_[i].owner.load(std::memory_order_relaxed))) return true;
  }
  for (uint32_t i = kSlots; i < kSlots + kSharedSlots; ++i) {
    if (is_set(slots_[i])) return true;
  }
  return false;
}

void Presence::BeginSession() {
  const uint32_t used = used_.load();
  for (uint32_t i = 0; i < kSlots + kSharedSlots; ++i) {
    if (i == used) i = kSlots;
    slots_[i].calls.store(0, std::memory_order_relaxed);
  }
  for (uint32_t i = 0; i < used; ++i) {
    ThreadSlot& slot = slots_[i];
    uint32_t owner = slot.owner.load();
    if (owner == 0 || IsAlive(owner)) continue;
    // Against a thread that takes it over just now.
    if (!slot.owner.compare_exchange_strong(owner, kNobody)) continue;
    slot.inside.store(0, std::memory_order_relaxed);
    slot.owner.store(0, std::memory_order_release);
  }
}

void Presence::Reset() {
  for (ThreadSlot& slot : slots_) {
    slot.owner.store(0, std::memory_order_relaxed);
    slot.inside.store(0, std::memory_order_relaxed);
    slot.calls.store(0, std::memory_order_relaxed);
  }
  used_.store(0);
}

}  // namespace xpu::inject
