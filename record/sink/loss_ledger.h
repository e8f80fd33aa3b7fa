// Counts losses where they happen; they are reported in the capture and at the end.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "format/events.h"
#include "format/losses.h"

namespace xpu {

class LossLedger {
 public:
  struct Entry {
    LossKind kind;
    uint32_t pid = 0;
    InstanceId instance;
    std::string detail;
    uint64_t count = 0;
  };

  void Add(LossKind kind, uint64_t count, uint32_t pid = 0, InstanceId instance = {},
           std::string detail = {});

  // Counts what other events of the capture already show, so it is not stored again.
  void AddUnstored(LossKind kind, uint64_t count) { totals_[static_cast<size_t>(kind)] += count; }

  // What was added since the last call: one entry for each kind, pid, instance and detail.
  std::vector<Entry> TakeNew();

  // Returns an entry that was taken but did not reach the capture.
  void PutBack(const Entry& entry);
  // Adds totals and details of another ledger, whose new entries are stored elsewhere.
  void AddTotals(const LossLedger& other);

  uint64_t total(LossKind kind) const { return totals_[static_cast<size_t>(kind)]; }
  // The sum of everything worse than a note.
  uint64_t total() const;
  // The part of it that xpu-report --strict ignores (IsAboutStacks).
  uint64_t total_about_stacks() const;
  // The different details of a kind, in order of arrival (at most 8).
  const std::vector<std::string>& details(LossKind kind) const {
    return details_[static_cast<size_t>(kind)];
  }
  // True if there were more.
  bool has_more_details(LossKind kind) const { return more_details_[static_cast<size_t>(kind)]; }

 private:
  using Key = std::tuple<LossKind, uint32_t, uint64_t, std::string>;
  static constexpr size_t kKinds = static_cast<size_t>(LossKind::kCount);

  std::map<Key, uint64_t> new_;
  std::array<uint64_t, kKinds> totals_{};
  void AddDetail(size_t kind, const std::string& detail);

  std::array<std::vector<std::string>, kKinds> details_;
  std::array<bool, kKinds> more_details_{};
};

}  // namespace xpu
