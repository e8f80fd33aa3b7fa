#include "cupti_inject/stack_ids.h"

#include <sys/mman.h>

#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {

bool StackIds::Open() {
  entries_ = static_cast<Entry*>(MapZeroed(kSlots * sizeof(Entry)));
  return entries_ != nullptr;
}

void StackIds::Close() {
  if (entries_ != nullptr) munmap(entries_, kSlots * sizeof(Entry));
  entries_ = nullptr;
}

// Two stacks of one hash would be one: at 65536 stacks of 64 bits that is one chance in 10^10.
uint64_t StackIds::HashOf(const uint64_t* frames, uint32_t count, uint64_t seed) {
  uint64_t hash = seed + count * 0x9e3779b97f4a7c15;
  for (uint32_t i = 0; i < count; ++i) {
    hash = (hash ^ frames[i]) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash == 0 ? 1 : hash;
}

StackIds::Entry* StackIds::Find(uint64_t hash) {
  for (uint32_t probe = 0; probe < kMaxProbes; ++probe) {
    Entry& entry = entries_[(hash + probe) & (kSlots - 1)];
    uint64_t found = entry.hash.load(std::memory_order_relaxed);
    if (found == hash) return &entry;
    if (found != 0) continue;
    if (entry.hash.compare_exchange_strong(found, hash, std::memory_order_relaxed) ||
        found == hash) {
      return &entry;
    }
  }
  return nullptr;
}

}  // namespace xpu::inject
