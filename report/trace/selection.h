// Which part of a trace is shown. It takes nothing out of the trace: several selections of one lie
// side by side, and one that selects all costs nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "report/base/event_set.h"
#include "report/base/intervals.h"
#include "report/model/recorded_time.h"
#include "report/trace/correlation.h"

namespace xpu {

// The work of a GPU that the other filters want, next to a time range that leaves it out: a gap may
// reach out of the range to it.
struct WorkAround {
  uint32_t before = kNoWork;  // in Correlation::work
  uint32_t after = kNoWork;   // likewise
};

// For each list of LoadedEvents, by its name, which of its events are shown.
struct EventSets {
#define XPU_SET(Event, list) EventSet list;
  XPU_EVENT_LISTS(XPU_SET)
#undef XPU_SET
};

struct Selection {
  EventSets events;
  // All samples of the sources that are shown, whatever a filter wants: `events.cpu_samples` are
  // among them. They still say what kept a GPU waiting.
  EventSet samples_of_sources;
  EventSet nvtx_ranges;  // of NvtxRanges::all()
  // A launch is there as long as work that it started or a graph node that it made is, so that work
  // always has its path.
  EventSet launches;  // of Correlation, as `work`
  EventSet work;

  // With --sample each event stands for so many.
  uint64_t scale = 1;
  // The part of `launches` that counts; the others are there because work refers to them.
  EventSet counted_launches;

  // The following are set by a filter.
  std::string filter_text;                    // its options; empty: there is none
  std::optional<Correlation::Counts> counts;  // of what is selected; none: Correlation::counts
  EventSet filtered_work = EventSet::None();  // not selected: its GPU was not idle meanwhile
  std::vector<Pause> outside;  // the time between the NVTX ranges that it wants; in order
  // The time outside the steps of the processes that use a GPU, by GPU; in order. Ranks are in
  // other steps at other times. GPUs of the same processes share the list: there may be as many
  // GPUs as steps.
  using SharedPauses = std::shared_ptr<const std::vector<Pause>>;
  std::map<uint32_t, SharedPauses> outside_of_gpu;
  // The time outside the steps by process, and for processes without steps of their own.
  std::map<uint32_t, SharedPauses> outside_of_process;
  std::vector<Pause> outside_of_others;
  // A filter chooses work or calls by more than their process, thread and time.
  bool chooses_calls = false;
  // The processes that a filter of processes or threads wants something of; nullopt: all.
  std::optional<std::set<uint32_t>> pids;
  std::map<uint32_t, WorkAround> around;  // by GPU, of a filter with a time range:
  uint64_t from_ns = 0;                   // where it begins, CLOCK_MONOTONIC
  uint64_t to_ns = UINT64_MAX;            // where it ends
};

// Removes the events of `list` from `set` that wants(event) does not want.
template <typename List, typename Wants>
void KeepIf(const List& list, EventSet& set, Wants wants) {
  set = EventSet::Where(list.size(), [&](size_t i) { return set.Has(i) && wants(list[i]); });
}

// The start and end of what an event takes; a moment is both.
template <typename Event>
std::pair<uint64_t, uint64_t> SpanOf(const Event& event) {
  if constexpr (requires { event.time_ns; }) {
    return {event.time_ns, event.time_ns};
  } else {
    return {event.start_ns, event.end_ns};
  }
}

// Notes the work, which is not selected, as Selection::around if it is outside the time that is
// shown and nearer to it than what is known of its GPU.
void AddAround(const GpuWorkList& all, uint32_t place, Selection& shown);

// The times between two times that a disjoint list leaves free.
std::vector<Pause> TimesBetween(const std::vector<Interval>& list, uint64_t from_ns,
                                uint64_t to_ns);

inline const Correlation::Counts& CountsOf(const Correlation& correlation, const Selection& shown) {
  return shown.counts ? *shown.counts : correlation.counts;
}

}  // namespace xpu
