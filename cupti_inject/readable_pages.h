// Reading memory of the program that is not a thread's stack, without ever faulting: by plain loads
// from pages that the kernel said were readable a moment ago.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace xpu::inject {

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
