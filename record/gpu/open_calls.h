// The calls of one process whose CUPTI records are outstanding: they are lost if the process is
// killed.
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
  // `memory`: of the process; outlives this object.
  explicit OpenCalls(FairBudget::Account& memory) : memory_(memory) {}

  // Sets the name of callback `id` in `domain`, which shows whether its calls start GPU work.
  void SetName(uint32_t domain, uint32_t id, std::string_view name);

  struct Call {
    uint32_t domain;
    uint32_t callback_id;
    uint32_t correlation_id;
    uint64_t start_ns;
    int32_t return_value;
    uint32_t graph_nodes;
  };
  void Add(const Call& call);
  void RemoveRecorded(uint32_t correlation_id) {
    if (open_.erase(correlation_id) > 0) memory_.Give(kCallBytes);
  }

  size_t size() const { return open_.size(); }
  // Start time of the oldest outstanding call; 0 if there is none.
  uint64_t OldestStartNs() const;

 private:
  static uint64_t KeyOf(uint32_t domain, uint32_t id) { return uint64_t{domain} << 32 | id; }

  static constexpr uint64_t kCallBytes = 40;  // estimated, for an entry of `open_`

  FairBudget::Account& memory_;
  std::unordered_set<uint64_t> working_;  // callbacks whose calls start GPU work
  // Calls are added and removed all the time: the pool reuses their entries.
  std::pmr::unsynchronized_pool_resource entries_;
  std::pmr::unordered_map<uint32_t, uint64_t> open_{&entries_};  // correlation id to start
};

}  // namespace xpu
