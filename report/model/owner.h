// The process and thread that something belongs to, as fields of what is in a trace.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "format/base/ids.h"
#include "format/events.h"

namespace xpu {

// One life of a process: from its fork (or the start of the recording) to its exit.
using ProcessId = Id<struct ProcessTag, uint32_t>;

// A thread under one name, with what its process has besides (trace/tracks.h).
using TrackId = Id<struct TrackTag, uint32_t>;

// A process and one of its threads.
using ThreadKey = std::pair<ProcessId, uint32_t>;

// The process and thread that something belongs to, at its time.
struct Owner {
  ProcessId process;     // none: no record names the pid
  uint32_t pid = 0;      // as the recorder sees it, 0: not known
  uint32_t tid = 0;      // likewise
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  TrackId track;

  ThreadKey thread() const { return {process, tid}; }
};

// A recorded event of a thread with its track and the process that had its pid then. Trace finds
// both once, when all events are loaded: views asked for them again and again.
template <typename Event>
struct Owned : Event {
  using Recorded = Event;

  constexpr Owned() = default;
  explicit Owned(const Event& event) : Event(event) {}

  ProcessId process;
  TrackId track;

  // A wait belongs to the process that its thread has at the end.
  Owner owner() const {
    if constexpr (requires(const Event& event) { event.end_ns; }) {
      return {process, this->pid, this->tid, this->end_ns, track};
    } else {
      return {process, this->pid, this->tid, this->time_ns, track};
    }
  }
};

template <typename Event>
inline constexpr std::string_view kEventName<Owned<Event>> = kEventName<Event>;

// Visits the fields that were recorded.
template <typename T, typename Visit>
requires std::same_as<std::remove_const_t<T>, Owned<typename T::Recorded>>
constexpr void VisitFields(T& event, Visit&& visit) {
  using Event = typename T::Recorded;
  VisitFields(static_cast<std::conditional_t<std::is_const_v<T>, const Event, Event>&>(event),
              visit);
}

}  // namespace xpu
