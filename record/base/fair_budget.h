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

}  // namespace xpu
