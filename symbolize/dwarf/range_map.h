// Which of many ranges, nested or not, holds an address.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

namespace xpu::dwarf {

struct AddressRange {
  uint64_t begin = 0;
  uint64_t end = 0;  // after the last byte

  bool operator==(const AddressRange&) const = default;
};

// Immutable and sorted: a look-up is one binary search. Where ranges overlap the one with the
// larger value counts, so values that are given out parents first name the innermost.
class RangeMap {
 public:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  struct Item {
    AddressRange range;
    uint32_t value = 0;
  };

  RangeMap() = default;
  explicit RangeMap(std::vector<Item> items);

  uint32_t Find(uint64_t address) const {
    auto after = std::upper_bound(
        pieces_.begin(), pieces_.end(), address,
        [](uint64_t wanted, const Item& piece) { return wanted < piece.range.begin; });
    if (after == pieces_.begin()) return kNone;
    --after;
    return address < after->range.end ? after->value : kNone;
  }

  // Without overlaps, ascending.
  const std::vector<Item>& pieces() const { return pieces_; }

 private:
  void Append(uint64_t begin, uint64_t end, uint32_t value);

  std::vector<Item> pieces_;
};

inline RangeMap::RangeMap(std::vector<Item> items) {
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.range.begin < b.range.begin; });
  const auto is_outer = [](const Item& a, const Item& b) { return a.value < b.value; };
  std::priority_queue<Item, std::vector<Item>, decltype(is_outer)> open(is_outer);
  pieces_.reserve(items.size());
  uint64_t at = 0;
  for (size_t next = 0; next < items.size() || !open.empty();) {
    if (open.empty()) at = std::max(at, items[next].range.begin);
    for (; next < items.size() && items[next].range.begin <= at; ++next) open.push(items[next]);
    while (!open.empty() && open.top().range.end <= at) open.pop();
    if (open.empty()) continue;
    uint64_t end = open.top().range.end;
    if (next < items.size()) end = std::min(end, items[next].range.begin);
    Append(at, end, open.top().value);
    at = end;
  }
}

inline void RangeMap::Append(uint64_t begin, uint64_t end, uint32_t value) {
  if (!pieces_.empty() && pieces_.back().value == value && pieces_.back().range.end == begin) {
    pieces_.back().range.end = end;
  } else {
    pieces_.push_back({.range = {.begin = begin, .end = end}, .value = value});
  }
}

}  // namespace xpu::dwarf
