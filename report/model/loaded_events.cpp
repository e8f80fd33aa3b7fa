#include "report/model/loaded_events.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

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

// Places by time; of one time in their order.
std::vector<uint32_t> PlacesByTime(const std::vector<uint64_t>& times) {
  std::vector<uint32_t> places(times.size());
  std::iota(places.begin(), places.end(), uint32_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](uint32_t a, uint32_t b) { return times[a] < times[b]; });
  return places;
}

// The lists are many: one function sorts for all.
template <typename Event>
void Order(EventList<Event>& list) {
  std::vector<Event>& events = list.rows();
  std::vector<uint64_t> times;
  times.reserve(events.size());
  for (const Event& event : events) times.push_back(TimeOf(event));
  if (std::is_sorted(times.begin(), times.end())) return;
  std::vector<Event> ordered;
  ordered.reserve(events.size());
  for (const uint32_t place : PlacesByTime(times)) ordered.push_back(events[place]);
  events = std::move(ordered);
}

// Of work on the GPU, whose order the correlation makes.
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
