// Memory that processes make us keep for them: one bound for all together, and room for each of
// them whatever the others do.
//
// A process may keep as much as is still free for all, so that one takes at most half, two a third
// each, sixteen a seventeenth: a share for whoever comes next is left, without a fixed share that
// were too small for one process and too much for a thousand. Who comes when little is free has at
// least what is its own. Rejected: a limit for each process, which is no limit for all.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

namespace xpu {

class FairBudget {
  struct State {
    uint64_t shared_bytes;
    uint64_t own_bytes;
    uint64_t taken_bytes = 0;  // of the shared ones
  };

 public:
  // Of all together, and of each one beside it.
  FairBudget(uint64_t shared_bytes, uint64_t own_bytes)
      : state_(std::make_shared<State>(State{shared_bytes, own_bytes})) {}

  // Of one process, as long as it has it. For one thread at a time, with all others of the budget.
  class Account {
   public:
    explicit Account(const FairBudget& budget) : state_(budget.state_) {}
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;
    ~Account() { Give(bytes_); }

    // False, which is counted: there is no room for so many more.
    bool Take(uint64_t bytes);
    // At most what was taken.
    void Give(uint64_t bytes);
    uint64_t bytes() const { return bytes_; }
    // Something is missing because of an earlier refusal.
    void CountRefusal() { ++refusals_; }
    uint64_t refusals() const { return refusals_; }

   private:
    uint64_t Shared(uint64_t bytes) const {
      return bytes > state_->own_bytes ? bytes - state_->own_bytes : 0;
    }

    std::shared_ptr<State> state_;
    uint64_t bytes_ = 0;
    uint64_t refusals_ = 0;
  };

 private:
  std::shared_ptr<State> state_;
};

// Value::Cost(): of memory, with the place in this table; it does not change.
template <typename Value>
class ChargedTable {
 public:
  // `memory` outlives this.
  explicit ChargedTable(FairBudget::Account& memory) : memory_(memory) {}

  // Replaces the previous one. If there is no room, it is counted and not kept.
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
