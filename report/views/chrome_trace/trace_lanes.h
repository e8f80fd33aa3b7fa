// Slices of one track must not overlap without nesting: viewers drop or misdraw those that do. What
// does not fit goes to a further lane. All are given in order of start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace xpu {

// Lanes whose slices follow one another.
class TraceLanes {
 public:
  // The first lane that is free from start_ns on; end_ns is not before it.
  size_t Place(uint64_t start_ns, uint64_t end_ns);

 private:
  template <typename Value>
  using MinQueue = std::priority_queue<Value, std::vector<Value>, std::greater<>>;

  MinQueue<std::pair<uint64_t, size_t>> busy_;  // until when, lane
  MinQueue<size_t> free_;
};

// One lane whose slices may nest.
class NestingLane {
 public:
  // False: it overlaps a slice that is there already, and is not placed.
  bool Place(uint64_t start_ns, uint64_t end_ns);

 private:
  std::vector<uint64_t> ends_;  // of the slices around the next one, outermost first
};

}  // namespace xpu
