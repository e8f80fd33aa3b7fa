#include "record/loss_ledger.h"

#include <algorithm>

namespace xpu {

void LossLedger::Add(LossKind kind, uint64_t count, uint32_t pid, InstanceId instance,
                     std::string detail) {
  if (count == 0) return;
  const auto index = static_cast<size_t>(kind);
  totals_[index] += count;
  std::vector<std::string>& details = details_[index];
  if (!detail.empty() && details.size() < 8 &&
      std::find(details.begin(), details.end(), detail) == details.end()) {
    details.push_back(detail);
  }
  new_[Key(kind, pid, instance.value, std::move(detail))] += count;
}

std::vector<LossLedger::Entry> LossLedger::TakeNew() {
  std::vector<Entry> entries;
  for (auto& [key, count] : new_) {
    const auto& [kind, pid, instance, detail] = key;
    entries.push_back({kind, pid, InstanceId{instance}, detail, count});
  }
  new_.clear();
  return entries;
}

uint64_t LossLedger::total() const {
  uint64_t sum = 0;
  for (const LossInfo& info : LossTable()) {
    if (info.severity != Severity::kNote) sum += total(info.kind);
  }
  return sum;
}

}  // namespace xpu
