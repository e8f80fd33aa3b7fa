// One pass over events of several lists in the order of their times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "report/base/sort_runs.h"

namespace xpu {

// The places of selected events in the order of time_of(place).
template <typename List, typename TimeOf>
std::vector<uint32_t> PlacesByTime(const List& selected, TimeOf time_of) {
  const auto all = selected.places();
  std::vector<uint32_t> places(all.begin(), all.end());
  SortRuns(places, [&](uint32_t a, uint32_t b) { return time_of(a) < time_of(b); });
  return places;
}

// The numbers below `size` as a list, for events that are known by theirs. (std::views::iota is
// beyond clang 14.)
class Numbers {
 public:
  struct Iterator {
    size_t at;
    size_t operator*() const { return at; }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator==(const Iterator&) const = default;
  };
  explicit Numbers(size_t size) : size_(size) {}
  Iterator begin() const { return {0}; }
  Iterator end() const { return {size_}; }

 private:
  size_t size_;
};

class TimeOrder {
 public:
  // Adds the events of a list, which is in order of time_of(event) already. Its iterators stay
  // valid until the pass is over. Events of one time come in the order in which lists are added.
  template <typename List, typename TimeOf, typename Visit>
  void Add(const List& list, TimeOf time_of, Visit visit) {
    auto at = list.begin();
    const auto end = list.end();
    if (at == end) return;
    const uint64_t first_ns = time_of(*at);
    const auto visit_next = [at, end, time_of, visit](uint64_t& time_ns) mutable {
      visit(*at);
      if (++at == end) return false;
      time_ns = time_of(*at);
      return true;
    };
    sources_.push_back({first_ns, visit_next});
  }

  // Visits all events until go_on() is false. Returns the time of the first that is left out.
  template <typename GoOn>
  std::optional<uint64_t> Visit(GoOn go_on) {
    while (!sources_.empty()) {
      const auto next =
          std::min_element(sources_.begin(), sources_.end(),
                           [](const Source& a, const Source& b) { return a.time_ns < b.time_ns; });
      if (!go_on()) return next->time_ns;
      if (!next->visit(next->time_ns)) sources_.erase(next);
    }
    return std::nullopt;
  }

 private:
  struct Source {
    uint64_t time_ns = 0;  // of its next event
    // Visits that one and sets the time of the one after it; false: there is none.
    std::function<bool(uint64_t& time_ns)> visit;
  };

  std::vector<Source> sources_;
};

}  // namespace xpu
