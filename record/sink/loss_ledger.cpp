#include "record/sink/loss_ledger.h"

#include <algorithm>

#include "format/base/saturated.h"

namespace xpu {

void LossLedger::AddDetail(size_t kind, const std::string& detail) {
  constexpr size_t kMaxDetails = 8;
  std::vector<std::string>& details = details_[kind];
  if (detail.empty() || std::find(details.begin(), details.end(), detail) != details.end()) return;
  if (details.size() < kMaxDetails) {
    details.push_back(detail);
  } else {
    more_details_[kind] = true;
  }
}

void LossLedger::Add(LossKind kind, uint64_t count, uint32_t pid, InstanceId instance,
                     std::string detail) {
  if (count == 0) return;
  const auto index = static_cast<size_t>(kind);
  totals_[index] = AddSaturated(totals_[index], count);
  AddDetail(index, detail);
  PutBack({kind, pid, instance, std::move(detail), count});
}

void LossLedger::PutBack(const Entry& entry) {
  uint64_t& sum = new_[Key(entry.kind, entry.pid, entry.instance.value, entry.detail)];
  sum = AddSaturated(sum, entry.count);
}

void LossLedger::AddTotals(const LossLedger& other) {
  for (size_t kind = 0; kind < kKinds; ++kind) {
    totals_[kind] = AddSaturated(totals_[kind], other.totals_[kind]);
    for (const std::string& detail : other.details_[kind]) AddDetail(kind, detail);
    more_details_[kind] = more_details_[kind] || other.more_details_[kind];
  }
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
    if (info.severity != Severity::kNote) sum = AddSaturated(sum, total(info.kind));
  }
  return sum;
}

uint64_t LossLedger::total_about_stacks() const {
  uint64_t sum = 0;
  for (const LossInfo& info : LossTable()) {
    if (IsAboutStacks(info.kind)) sum = AddSaturated(sum, total(info.kind));
  }
  return sum;
}

}  // namespace xpu
