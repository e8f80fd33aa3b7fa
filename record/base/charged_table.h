// What a process has sent under numbers of its own, each entry charged to the process.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "record/base/fair_budget.h"

namespace xpu {

// Value::Cost(): of memory, with the place in this table; it does not change.
template <typename Value>
class ChargedTable {
 public:
  // `memory` outlives this.
  explicit ChargedTable(FairBudget::Account& memory) : memory_(memory) {}

  // In the place of the one that was there. Where there is no room, it is counted and not kept.
  void Put(uint32_t number, Value value) {
    Erase(number);
    if (memory_.Take(value.Cost())) values_.emplace(number, std::move(value));
  }
  void Erase(uint32_t number) {
    const auto found = values_.find(number);
    if (found == values_.end()) return;
    memory_.Give(found->second.Cost());
    values_.erase(found);
  }
  Value* Find(uint32_t number) {
    const auto found = values_.find(number);
    return found == values_.end() ? nullptr : &found->second;
  }
  // Of one that is not there: true, which is counted, where there may have been no room for it.
  bool MayBeRefused() {
    if (memory_.refusals() == 0) return false;
    memory_.CountRefusal();
    return true;
  }

 private:
  FairBudget::Account& memory_;
  std::unordered_map<uint32_t, Value> values_;
};

}  // namespace xpu
