#include "symbolize/unwind/unwind_table_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace xpu {

UnwindTableWriter::UnwindTableWriter()
    : rules_({UnwindRule{}, UnwindRule{.cfa = UnwindCfa::kUnsupported}}) {
  indices_ = {{std::bit_cast<uint64_t>(rules_[kNoneIndex]), kNoneIndex},
              {std::bit_cast<uint64_t>(rules_[kUnsupportedIndex]), kUnsupportedIndex}};
}

uint16_t UnwindTableWriter::IndexOf(const UnwindRule& rule) {
  const auto key = std::bit_cast<uint64_t>(rule);
  // A table in front of the map: a few dozen rules make nearly all rows.
  Recent& recent = recent_[(key * 0x9e3779b97f4a7c15) >> 56];
  if (recent.key == key) return recent.index;
  const auto found = indices_.find(key);
  uint16_t index = kUnsupportedIndex;
  if (found != indices_.end()) {
    index = found->second;
  } else if (rules_.size() < kMaxUnwindRules) {
    index = static_cast<uint16_t>(rules_.size());
    indices_.emplace(key, index);
    rules_.push_back(rule);
  }
  recent = {key, index};
  return index;
}

void UnwindTableWriter::AddRow(uint16_t offset, uint16_t rule) {
  if (rows_.size() == kMaxUnwindRows) {
    too_large_ = true;
    return;
  }
  rows_.push_back({offset, rule});
}

void UnwindTableWriter::OpenPagesUpTo(uint64_t page) {
  if (page - first_page_ >= kMaxUnwindPages) {
    too_large_ = true;
    return;
  }
  while (pages() <= page - first_page_ && !too_large_) {
    page_rows_.push_back(static_cast<uint32_t>(rows_.size()));
    AddRow(0, current_);
  }
}

void UnwindTableWriter::Add(uint64_t address, const UnwindRule& rule) {
  const uint64_t page = address >> kUnwindPageShift;
  if (page_rows_.empty()) first_page_ = page;
  const uint16_t index = IndexOf(rule);
  if (too_large_ || (index == current_ && !page_rows_.empty())) return;
  OpenPagesUpTo(page);
  if (too_large_) return;
  const auto offset = static_cast<uint16_t>(address & (kUnwindPageBytes - 1));
  if (rows_.back().offset == offset) {
    rows_.back().rule = index;
  } else {
    AddRow(offset, index);
  }
  current_ = index;
}

Result<UnwindTableBytes> UnwindTableWriter::Finish(uint64_t end, UnwindStats* stats) {
  if (end % kUnwindPageBytes != 0) {
    Add(end, UnwindRule{});
  } else if (end != 0) {
    OpenPagesUpTo((end - 1) >> kUnwindPageShift);
  }
  const UnwindTableHeader header{.magic = kUnwindMagic,
                                 .version = kUnwindVersion,
                                 .bytes = UnwindTable::Bytes(pages(), rules_.size(), rows_.size()),
                                 .first_page = first_page_,
                                 .page_count = static_cast<uint32_t>(pages()),
                                 .rule_count = static_cast<uint32_t>(rules_.size()),
                                 .row_count = static_cast<uint32_t>(rows_.size()),
                                 .reserved = 0};
  if (too_large_) {
    return Error{
        ErrorKind::kUnsupported, "more code or more rules than an unwind table may hold", {}};
  }
  page_rows_.push_back(header.row_count);
  std::vector<uint64_t> words(header.bytes / sizeof(uint64_t));
  auto* const out = reinterpret_cast<std::byte*>(words.data());
  std::memcpy(out, &header, sizeof(header));
  std::memcpy(out + sizeof(header), page_rows_.data(), page_rows_.size() * sizeof(uint32_t));
  std::memcpy(out + UnwindTable::RulesAt(header.page_count), rules_.data(),
              rules_.size() * sizeof(UnwindRule));
  std::memcpy(out + UnwindTable::RowsAt(header.page_count, header.rule_count), rows_.data(),
              rows_.size() * sizeof(UnwindRow));
  if (stats != nullptr) {
    stats->rows = rows_.size();
    stats->unsupported =
        static_cast<uint64_t>(std::count_if(rows_.begin(), rows_.end(), [](const UnwindRow& row) {
          return row.rule == kUnsupportedIndex;
        }));
  }
  return UnwindTableBytes(std::move(words));
}

}  // namespace xpu
