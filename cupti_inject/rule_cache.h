// The unwind rules of the addresses that walks met lately, so that a warm frame costs one look.
// Shared by all threads without a lock: the two words of an entry agree only when both are of one
// write.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "symbolize/unwind/unwind_table.h"

namespace xpu::inject {

class RuleCache {
 public:
  static constexpr uint32_t kSlotBits = 14;
  struct Entry {
    std::atomic<uint64_t> mixed;  // the key, exclusive-or the rule
    std::atomic<uint64_t> rule;
  };
  static constexpr size_t kBytes = sizeof(Entry) << kSlotBits;

  // Zeroed memory of kBytes.
  void Attach(Entry* entries) { entries_ = entries; }

  // `generation`, from 1: what was added under another one is not found.
  bool Find(uint64_t address, uint64_t generation, UnwindRule* rule) const {
    const Entry& entry = entries_[SlotOf(address)];
    const uint64_t word = entry.rule.load(std::memory_order_relaxed);
    if ((entry.mixed.load(std::memory_order_relaxed) ^ word) != KeyOf(address, generation)) {
      return false;
    }
    *rule = std::bit_cast<UnwindRule>(word);
    return true;
  }

  void Add(uint64_t address, uint64_t generation, UnwindRule rule) {
    Entry& entry = entries_[SlotOf(address)];
    const auto word = std::bit_cast<uint64_t>(rule);
    entry.rule.store(word, std::memory_order_relaxed);
    entry.mixed.store(KeyOf(address, generation) ^ word, std::memory_order_relaxed);
  }

 private:
  static size_t SlotOf(uint64_t address) {
    return address * 0x9e3779b97f4a7c15 >> (64 - kSlotBits);
  }
  // Addresses of programs have no highest bits.
  static uint64_t KeyOf(uint64_t address, uint64_t generation) {
    return address ^ generation << 48;
  }

  Entry* entries_ = nullptr;
};

}  // namespace xpu::inject
