#include "record/gpu/code_ranges.h"

#include <iterator>

namespace xpu {

const CodeRange* CodeRanges::Version::Find(uint64_t address) const {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin() || address >= std::prev(after)->second.end) return nullptr;
  return &std::prev(after)->second;
}

std::map<uint64_t, CodeRange>& CodeRanges::ForWriting() {
  if (now_.use_count() > 1) now_ = std::make_shared<Version>(*now_);
  return now_->ranges_;
}

void CodeRanges::Remove(uint64_t start) { ForWriting().erase(start); }

void CodeRanges::Add(uint64_t start, const CodeRange& range) {
  auto& ranges = ForWriting();
  auto at = ranges.lower_bound(start);
  if (at != ranges.begin() && std::prev(at)->second.end > start) --at;
  while (at != ranges.end() && at->first < range.end) at = ranges.erase(at);
  if (ranges.size() < kMaxRanges) ranges[start] = range;
}

}  // namespace xpu
