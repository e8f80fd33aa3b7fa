#include "record/base/fair_budget.h"

#include "format/base/check.h"

namespace xpu {

bool FairBudget::Account::Take(uint64_t bytes) {
  // No valid request is larger, and the sums below cannot overflow.
  const bool has_sense = bytes <= state_->shared_bytes + state_->own_bytes;
  const uint64_t shared = has_sense ? Shared(bytes_ + bytes) : 0;
  const uint64_t taken = state_->taken_bytes - Shared(bytes_) + shared;
  const bool is_free = taken <= state_->shared_bytes && shared <= state_->shared_bytes - taken;
  if (!has_sense || (shared > 0 && !is_free)) {
    CountRefusal();
    return false;
  }
  bytes_ += bytes;
  state_->taken_bytes = taken;
  return true;
}

void FairBudget::Account::Give(uint64_t bytes) {
  XPU_CHECK(bytes <= bytes_);
  state_->taken_bytes -= Shared(bytes_) - Shared(bytes_ - bytes);
  bytes_ -= bytes;
}

}  // namespace xpu
