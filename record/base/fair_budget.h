// Bounds the memory that the recorder keeps for processes: one limit for all of them together, and
// a guaranteed share for each of them, whatever the others do.
//
// A process may take as much as is still free for all. So one process takes at most half, two a
// third each, sixteen a seventeenth: something is always left for the next one, without a fixed
// share that would be too small for one process and too large for a thousand. A process that starts
// when little is free still has its own share. A limit per process was rejected, because it does
// not limit the sum.
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
    uint64_t taken_bytes = 0;  // of the shared budget
  };

 public:
  // `shared_bytes`: for all processes together. `own_bytes`: for each process, in addition.
  FairBudget(uint64_t shared_bytes, uint64_t own_bytes)
      : state_(std::make_shared<State>(State{shared_bytes, own_bytes})) {}

  // The memory of one process. All accounts of a budget are used by one thread.
  class Account {
   public:
    explicit Account(const FairBudget& budget) : state_(budget.state_) {}
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;
    ~Account() { Give(bytes_); }

    // Returns false, and counts a refusal, if not enough is left.
    bool Take(uint64_t bytes);
    // Returns at most what was taken.
    void Give(uint64_t bytes);
    uint64_t bytes() const { return bytes_; }
    // Counts something that is missing because of an earlier refusal.
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

// Value::Cost(): the memory of the value and its entry in the table, which must not change.
template <typename Value>
class ChargedTable {
 public:
  // `memory` outlives this object.
  explicit ChargedTable(FairBudget::Account& memory) : memory_(memory) {}

  // Replaces the previous value. If the budget is exhausted, the value is counted and dropped.
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
  // For a value that was not found: returns true, and counts it, if it may have been refused.
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
