#include "report/model/loaded_events.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace xpu {
namespace {

// The event's first time; 0: it has none.
template <typename Event>
uint64_t TimeOf(const Event& event) {
  uint64_t time_ns = 0;
  bool is_found = false;
  VisitFields(event, [&]<typename Field>(FieldInfo info, const Field& field) {
    if constexpr (std::is_same_v<Field, uint64_t>) {
      if (is_found || info.clock == Clock::kNone) return;
      is_found = true;
      time_ns = field;
    }
  });
  return time_ns;
}

template <typename Event>
void Order(EventList<Event>& list) {
  std::vector<Event>& events = list.rows();
  const auto is_earlier = [](const Event& a, const Event& b) { return TimeOf(a) < TimeOf(b); };
  if (std::is_sorted(events.begin(), events.end(), is_earlier)) return;
  std::vector<uint64_t> times;
  times.reserve(events.size());
  for (const Event& event : events) times.push_back(TimeOf(event));
  std::vector<Event> ordered;
  ordered.reserve(events.size());
  for (const uint32_t place : PlacesInOrder(times)) ordered.push_back(events[place]);
  events = std::move(ordered);
}

// Leaves work on the GPU as it is: the correlation makes its order.
template <typename List>
void Order(List&) {}

void Order(ApiCallList& calls) { calls.SortBy<&ApiCall::start_ns>(); }
void Order(SampleList& samples) { samples.SortBy<&CpuSample::time_ns>(); }
void Order(LaunchStackList& stacks) { stacks.SortBy<&LaunchStack::time_ns>(); }

}  // namespace

void OrderByTime(LoadedEvents& events) {
  VisitLists(events, [](const char*, auto& list) { Order(list); });
}

}  // namespace xpu
