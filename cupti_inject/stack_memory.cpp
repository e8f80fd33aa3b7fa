#include "cupti_inject/stack_memory.h"

#include <bit>
#include <cerrno>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {
namespace {

constexpr uint64_t kPage = 4096;
// Deeper stacks are read through the kernel.
constexpr uint64_t kMaxDirectBytes = uint64_t{64} << 20;
// A thread that walks on stacks of its own making is not asked about them for ever.
constexpr uint32_t kMaxFailures = 8;

// The x86-64 ABI of glibc and musl: the thread control block, to which fs:0 points, lies above the
// stack that its thread was started with, in the same mapping.
uint64_t ThreadPointer() {
  uint64_t pointer;
  __asm__("mov %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

// Every page of [start, end): a guard page between a coroutine's stack and the thread's own ends
// it.
bool AreReadable(uint64_t start, uint64_t end) {
  for (uint64_t page = start / kPage * kPage; page < end; page += kPage) {
    if (!IsReadablePage(page)) return false;
  }
  return true;
}

bool IsBelow(uint64_t sp, uint64_t top) { return sp < top && top - sp <= kMaxDirectBytes; }

}  // namespace

bool ScratchPool::Open() {
  memory_ = static_cast<std::byte*>(MapZeroed(kPieces * kPieceBytes));
  return memory_ != nullptr;
}

void ScratchPool::Close() {
  if (memory_ != nullptr) munmap(memory_, kPieces * kPieceBytes);
  memory_ = nullptr;
}

std::byte* ScratchPool::Take() {
  uint32_t taken = taken_.load(std::memory_order_relaxed);
  while (memory_ != nullptr && taken != UINT32_MAX) {
    const auto piece = static_cast<uint32_t>(std::countr_one(taken));
    if (taken_.compare_exchange_weak(taken, taken | 1u << piece, std::memory_order_acquire)) {
      return memory_ + piece * kPieceBytes;
    }
  }
  return nullptr;
}

void ScratchPool::Give(std::byte* piece) {
  const auto index = static_cast<uint32_t>((piece - memory_) / static_cast<long>(kPieceBytes));
  taken_.fetch_and(~(1u << index), std::memory_order_release);
}

// rt_sigprocmask reads the set before it refuses the `how`, and nothing happens.
bool IsReadablePage(uint64_t address) {
  constexpr int kNoHow = -1;
  constexpr size_t kSetBytes = 8;
  const int saved_errno = errno;
  syscall(SYS_rt_sigprocmask, kNoHow, address / kPage * kPage, nullptr, kSetBytes);
  const bool readable = errno == EINVAL;
  errno = saved_errno;
  return readable;
}

size_t ReadOwnMemory(uint64_t address, void* to, size_t bytes) {
  // One entry for each page: the kernel does not promise a part of an entry.
  constexpr size_t kParts = ScratchPool::kPieceBytes / kPage + 1;
  iovec parts[kParts];
  size_t count = 0;
  for (size_t done = 0; done < bytes && count < kParts; ++count) {
    const size_t left_in_page = kPage - (address + done) % kPage;
    const size_t part = bytes - done < left_in_page ? bytes - done : left_in_page;
    parts[count] = {reinterpret_cast<void*>(address + done), part};
    done += part;
  }
  iovec local{to, bytes};
  const int saved_errno = errno;
  // As wide as the kernel reads them: of an int only the lower half is certain to arrive.
  const long n =
      syscall(SYS_process_vm_readv, static_cast<long>(getpid()), &local, 1UL, parts, count, 0UL);
  errno = saved_errno;
  return n < 0 ? 0 : static_cast<size_t>(n);
}

bool ThreadStack::Extend(uint64_t sp, uint64_t main_top) {
  // The mapped end once known, only new pages below are tried.
  if (low != 0 && IsBelow(sp, top) && sp < low) {
    if (failures >= kMaxFailures) return false;
    if (AreReadable(sp, low)) {
      low = sp / kPage * kPage;
      return true;
    }
    ++failures;
    return false;
  }
  if (low != 0 || failures >= kMaxFailures) return false;
  for (const uint64_t end : {ThreadPointer(), main_top}) {
    if (!IsBelow(sp, end) || !AreReadable(sp, end)) continue;
    top = end;
    low = sp / kPage * kPage;
    return true;
  }
  ++failures;
  return false;
}

bool StackMemory::FillWindow(uint64_t address) {
  if (window_ == nullptr) window_ = pool_.Take();
  if (window_ == nullptr || windows_ == kMaxWindows) return false;
  ++windows_;
  // What is read next lies above nearly always.
  window_start_ = address / 8 * 8;
  window_bytes_ = ReadOwnMemory(window_start_, window_, ScratchPool::kPieceBytes);
  return window_bytes_ > 0;
}

bool StackMemory::ReadElsewhere(uint64_t address, uint64_t* value) {
  for (int tries = 0; tries < 2; ++tries) {
    const uint64_t at = address - window_start_;
    if (window_bytes_ >= 8 && at <= window_bytes_ - 8) {
      std::memcpy(value, window_ + at, sizeof(*value));
      return true;
    }
    if (tries == 0 && !FillWindow(address)) return false;
  }
  return false;
}

const std::byte* StackMemory::Piece(uint64_t address, size_t bytes, size_t* there) {
  if (address - low_ < size_) {
    const uint64_t left = low_ + size_ + 7 - address;
    *there = left < bytes ? left : bytes;
    return reinterpret_cast<const std::byte*>(address);
  }
  windows_ = 0;
  *there = 0;
  if (!FillWindow(address)) return nullptr;
  const uint64_t skipped = address - window_start_;
  if (window_bytes_ <= skipped) return nullptr;
  *there = window_bytes_ - skipped < bytes ? window_bytes_ - skipped : bytes;
  return window_ + skipped;
}

bool ReadablePages::Ask(uint64_t address, uint64_t known, std::atomic<uint64_t>& slot) {
  const bool is_of_program = address >> 47 == 0;
  if (!is_of_program || !IsReadablePage(address)) return false;
  slot.store(known, std::memory_order_relaxed);
  return true;
}

}  // namespace xpu::inject
