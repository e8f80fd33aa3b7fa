// The calls of one process that CUPTI still owes a record: what dies with the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "record/base/fair_budget.h"

namespace xpu {

class OpenCalls {
 public:
  // `memory`: of the process; outlives this.
  explicit OpenCalls(FairBudget::Account& memory) : memory_(memory) {}

  // What the callback `id` of `domain` is called: the name tells whether its calls make GPU work.
  void SetName(uint32_t domain, uint32_t id, std::string_view name);

  struct Call {
    uint32_t domain;
    uint32_t callback_id;
    uint32_t correlation_id;
    uint64_t start_ns;
    int32_t return_value;
    uint32_t graph_nodes;
  };
  void Took(const Call& call);
  void TookRecord(uint32_t correlation_id) {
    if (open_.erase(correlation_id) > 0) memory_.Give(kCallBytes);
  }

  size_t size() const { return open_.size(); }
  // Start of the oldest; 0: there is none.
  uint64_t OldestStartNs() const;

 private:
  static uint64_t KeyOf(uint32_t domain, uint32_t id) { return uint64_t{domain} << 32 | id; }

  static constexpr uint64_t kCallBytes = 40;  // of `open_`, about

  FairBudget::Account& memory_;
  std::unordered_set<uint64_t> working_;  // callbacks whose calls make GPU work
  // Each call comes and goes: its entry is one that went before.
  std::pmr::unsynchronized_pool_resource entries_;
  std::pmr::unordered_map<uint32_t, uint64_t> open_{&entries_};  // correlation id to start
};

}  // namespace xpu
