// Reading the calling thread's stack without ever faulting: within the thread's own stack, whose
// pages were tried before, by plain loads; anywhere else (an alternate signal stack, a coroutine, a
// frame that lies) through the kernel, which refuses where we would fault. And other memory of the
// program, by plain loads from pages that the kernel said were readable a moment ago.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace xpu::inject {

// Pieces of memory for copies, taken and given back without a lock: a program's thread may have too
// little stack of its own for one.
class ScratchPool {
 public:
  static constexpr size_t kPieceBytes = size_t{16} << 10;

  bool Open();
  void Close();
  // nullptr: all are taken.
  std::byte* Take();
  void Give(std::byte* piece);

 private:
  static constexpr uint32_t kPieces = 32;

  std::byte* memory_ = nullptr;
  std::atomic<uint32_t> taken_{0};  // a bit each
};

// Asks the kernel, which looks at nothing else: 60 ns.
bool IsReadablePage(uint64_t address);

// Copies [address, address + bytes) as far as it is readable; returns how much that was.
size_t ReadOwnMemory(uint64_t address, void* to, size_t bytes);

// The part of a thread's own stack that plain loads may read. In thread-local storage: plain data.
struct ThreadStack {
  uint64_t low;  // every page from here to `top` was readable; 0: nothing known
  uint64_t top;
  uint32_t failures;
  uint64_t next_python_search_ns;  // PythonStacks: the thread had no state of an interpreter

  // True: [sp, top) may be read. `main_top`: an address at the top of the main thread's stack.
  bool Covers(uint64_t sp, uint64_t main_top) {
    return (sp >= low && sp < top) || Extend(sp, main_top);
  }

 private:
  bool Extend(uint64_t sp, uint64_t main_top);
};

// What WalkStack reads. Of one walk.
class StackMemory {
 public:
  // `low`, `top`: where plain loads are allowed; equal: nowhere.
  StackMemory(uint64_t low, uint64_t top, ScratchPool& pool)
      : low_(low), size_(top - low < 8 ? 0 : top - low - 7), pool_(pool) {}
  StackMemory(const StackMemory&) = delete;
  StackMemory& operator=(const StackMemory&) = delete;
  ~StackMemory() {
    if (window_ != nullptr) pool_.Give(window_);
  }

  // The thread's redzones are of no concern to us.
  __attribute__((no_sanitize("address"))) bool Read(uint64_t address, uint64_t* value) {
    if (address - low_ < size_) {
      *value = *reinterpret_cast<const Unaligned*>(address);
      return true;
    }
    return ReadElsewhere(address, value);
  }

  // [address, address + bytes) in one piece that holds until the next call: in place, or a copy.
  // Returns how many bytes are there.
  const std::byte* Piece(uint64_t address, size_t bytes, size_t* there);

 private:
  using Unaligned __attribute__((aligned(1), may_alias)) = uint64_t;
  static constexpr uint32_t kMaxWindows = 64;  // in one walk: each is a system call

  bool ReadElsewhere(uint64_t address, uint64_t* value);
  bool FillWindow(uint64_t address);

  uint64_t low_;
  uint64_t size_;
  ScratchPool& pool_;
  std::byte* window_ = nullptr;
  uint64_t window_start_ = 0;
  uint64_t window_bytes_ = 0;
  uint32_t windows_ = 0;
};

// Reads memory that is not a thread's stack.
class ReadablePages {
 public:
  // A page that was readable is believed to be so for this long.
  static constexpr int kAgeShift = 27;  // of nanoseconds: 0.13 s

  // Copies [address, address + bytes), at most a page of it. `now_ns`: CLOCK_MONOTONIC, lately.
  __attribute__((no_sanitize("address"))) bool Read(uint64_t address, void* to, size_t bytes,
                                                    uint64_t now_ns) {
    const uint64_t last = address + bytes - 1;
    if (!IsReadable(address, now_ns)) return false;
    if ((address ^ last) >> kPageShift != 0 && !IsReadable(last, now_ns)) return false;
    std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
    return true;
  }

 private:
  static constexpr uint64_t kPageShift = 12;
  static constexpr uint32_t kSlotBits = 10;
  static constexpr uint64_t kAgeBits = 20;

  bool IsReadable(uint64_t address, uint64_t now_ns) {
    const uint64_t page = address >> kPageShift;
    const uint64_t known = page << kAgeBits | ((now_ns >> kAgeShift) & ((1u << kAgeBits) - 1));
    std::atomic<uint64_t>& slot = slots_[page * 0x9e3779b97f4a7c15 >> (64 - kSlotBits)];
    return slot.load(std::memory_order_relaxed) == known || Ask(address, known, slot);
  }
  static bool Ask(uint64_t address, uint64_t known, std::atomic<uint64_t>& slot);

  std::atomic<uint64_t> slots_[1u << kSlotBits] = {};
};

}  // namespace xpu::inject
