// Intervals of time, and lists of them. An interval is whatever has a start_ns and an end_ns; it
// lasts until just before its end_ns. A list is disjoint if it is in order and none of its
// intervals reaches into the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/base/saturated.h"
#include "report/base/sort_runs.h"

namespace xpu {

struct Interval {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

// 0: the two do not overlap.
template <typename A, typename B>
uint64_t OverlapNs(const A& a, const B& b) {
  const uint64_t start_ns = std::max(a.start_ns, b.start_ns);
  return std::min(std::max(a.end_ns, start_ns), std::max(b.end_ns, start_ns)) - start_ns;
}

// The length of a disjoint list.
template <typename List>
uint64_t LengthNs(const List& list) {
  uint64_t ns = 0;
  for (const auto& one : list) ns = AddSaturated(ns, one.end_ns - one.start_ns);
  return ns;
}

template <typename One>
void SortByStart(std::vector<One>& all) {
  SortRuns(all, [](const One& a, const One& b) { return a.start_ns < b.start_ns; });
}

// Makes the list disjoint: joins intervals that overlap or touch. Calls extend(joined, longer)
// where an interval reaches beyond the end of those that it is joined with.
template <typename One, typename Extend>
void Unite(std::vector<One>& all, Extend extend) {
  SortByStart(all);
  size_t kept = 0;
  for (const One& one : all) {
    if (kept == 0 || one.start_ns > all[kept - 1].end_ns) {
      all[kept++] = one;
    } else if (One& joined = all[kept - 1]; one.end_ns > joined.end_ns) {
      joined.end_ns = one.end_ns;
      extend(joined, one);
    }
  }
  all.resize(kept);
}

template <typename One>
void Unite(std::vector<One>& all) {
  Unite(all, [](One&, const One&) {});
}

// Returns the times that two disjoint lists share.
inline std::vector<Interval> Intersection(const std::vector<Interval>& a,
                                          const std::vector<Interval>& b) {
  std::vector<Interval> common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint64_t start_ns = std::max(a[i].start_ns, b[j].start_ns);
    const uint64_t end_ns = std::min(a[i].end_ns, b[j].end_ns);
    if (start_ns < end_ns) common.push_back({start_ns, end_ns});
    (a[i].end_ns < b[j].end_ns ? i : j) += 1;
  }
  return common;
}

// Calls gap(start_ns, end_ns, next) for the times between two times that a disjoint list leaves
// free; `next` is the place of the interval that ends the gap, or the size of the list.
template <typename List, typename Gap>
void ForEachGap(const List& list, uint64_t from_ns, uint64_t to_ns, Gap gap) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].start_ns > from_ns) gap(from_ns, list[i].start_ns, i);
    from_ns = list[i].end_ns;
  }
  if (to_ns > from_ns) gap(from_ns, to_ns, list.size());
}

// The first interval of a disjoint list that ends after a time.
template <typename List>
auto FirstEndingAfter(const List& list, uint64_t ns) {
  return std::partition_point(list.begin(), list.end(),
                              [ns](const auto& one) { return one.end_ns <= ns; });
}

// Whether a disjoint list has some of the time from one to the other; an instant lasts 1 ns.
template <typename List>
bool Overlaps(const List& list, uint64_t from_ns, uint64_t to_ns) {
  const auto after = FirstEndingAfter(list, from_ns);
  return after != list.end() && after->start_ns < std::max(to_ns, from_ns + 1);
}

// The interval of a disjoint list that holds a time; nullptr: none does.
template <typename One>
const One* FindAt(const std::vector<One>& list, uint64_t ns) {
  const auto found = FirstEndingAfter(list, ns);
  return found == list.end() || found->start_ns > ns ? nullptr : &*found;
}

// Calls visit(interval, start_ns, end_ns) for each interval of a disjoint list that overlaps the
// time from one to the other, with the part that does.
template <typename List, typename Visit>
void ForEachOverlap(const List& list, uint64_t from_ns, uint64_t to_ns, Visit visit) {
  for (auto one = FirstEndingAfter(list, from_ns); one != list.end() && one->start_ns < to_ns;
       ++one) {
    const uint64_t start_ns = std::max(one->start_ns, from_ns);
    visit(*one, start_ns, std::max(start_ns, std::min(one->end_ns, to_ns)));
  }
}

// Finds the intervals around a place, an address or a time, among many that may overlap: it passes
// over those that end before the place.
class IntervalIndex {
 public:
  // In order of their start; calls end_of(place in the list).
  template <typename EndOf>
  void Set(size_t size, EndOf end_of) {
    latest_end_.clear();
    uint64_t end = 0;
    for (size_t i = 0; i < size; ++i) latest_end_.push_back(end = std::max(end, end_of(i)));
  }

  // Calls visit(place in the list) for those from the last one that starts at or before `at`,
  // before which `count` of the list lie, downwards: until it returns false, or all further ones
  // end.
  template <typename Visit>
  void ForEachDown(size_t count, uint64_t at, Visit visit) const {
    while (count > 0 && latest_end_[count - 1] > at && visit(count - 1)) --count;
  }

 private:
  std::vector<uint64_t> latest_end_;  // of those up to here
};

}  // namespace xpu
