// Puts the rules of ascending addresses into the form of a table (unwind_table.h).
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "format/base/result.h"
#include "symbolize/unwind/unwind_builder.h"

namespace xpu {

class UnwindTableWriter {
 public:
  UnwindTableWriter();

  // `rule` holds from `address` on, until the next call. Addresses do not descend.
  void Add(uint64_t address, const UnwindRule& rule);
  // The table of what was added; it ends at `end`. kUnsupported: larger than tables may be; what
  // did not fit was not kept.
  Result<UnwindTableBytes> Finish(uint64_t end, UnwindStats* stats);

 private:
  // Fixed places, so that there is always a rule for what does not fit.
  static constexpr uint16_t kNoneIndex = 0;
  static constexpr uint16_t kUnsupportedIndex = 1;
  static constexpr size_t kRecentRules = 256;

  uint16_t IndexOf(const UnwindRule& rule);
  void OpenPagesUpTo(uint64_t page);
  void AddRow(uint16_t offset, uint16_t rule);
  uint64_t pages() const { return page_rows_.size(); }

  struct Recent {
    uint64_t key = 0;  // of the rule kNone
    uint16_t index = kNoneIndex;
  };

  uint64_t first_page_ = 0;
  bool too_large_ = false;
  uint16_t current_ = kNoneIndex;
  std::vector<uint32_t> page_rows_;
  std::vector<UnwindRow> rows_;
  std::vector<UnwindRule> rules_;
  std::unordered_map<uint64_t, uint16_t> indices_;
  std::array<Recent, kRecentRules> recent_;
};

}  // namespace xpu
