// Which stacks were sent already: from a hash of the frames to the stack's number, for the life of
// the process. No locks; from any thread, also in a signal handler that interrupted a search.
#pragma once

#include <atomic>
#include <cstdint>

namespace xpu::inject {

class StackIds {
 public:
  static constexpr uint32_t kSlots = 1u << 16;

  bool Open();
  void Close();

  struct Entry {
    std::atomic<uint64_t> hash;  // 0: free
    std::atomic<bool> sent;
  };

  static uint64_t HashOf(const uint64_t* frames, uint32_t count, uint64_t seed);

  // The stack's own entry; nullptr: the table is full around there.
  Entry* Find(uint64_t hash);
  // From 1.
  uint32_t NumberOf(const Entry* entry) const {
    return static_cast<uint32_t>(entry - entries_) + 1;
  }

 private:
  static constexpr uint32_t kMaxProbes = 16;

  Entry* entries_ = nullptr;
};

}  // namespace xpu::inject
