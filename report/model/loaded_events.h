// The events of a capture as reports keep them: the lists of EventBatch, the long ones compact.
#pragma once

#include <cstddef>
#include <vector>

#include "format/events.h"
#include "report/model/compact_list.h"
#include "report/model/owner.h"

namespace xpu {

// The events of one kind, as views read them: by place, in order, field by field. CompactList has
// the same members, so that no view depends on how a kind is kept.
template <typename Event>
class EventList {
 public:
  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  const Event& operator[](size_t index) const { return rows_[index]; }
  const Event& front() const { return rows_.front(); }
  const Event& back() const { return rows_.back(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

  // One field: Get<&Mapping::path>(index).
  template <auto kField>
  auto Get(size_t index) const {
    return rows_[index].*kField;
  }

  void push_back(const Event& event) { rows_.push_back(event); }
  // See CompactList::FindTracks.
  template <typename Tracks>
  void FindTracks(const Tracks& tracks) {
    for (Event& event : rows_) {
      event.track = tracks.At(event.pid, event.tid, event.owner().time_ns);
      event.process = tracks[event.track].process;
    }
  }

  // For those who load, join and order events.
  std::vector<Event>& rows() { return rows_; }
  const std::vector<Event>& rows() const { return rows_; }

 private:
  std::vector<Event> rows_;
};

using ApiCallList =
    CompactList<ApiCall, &ApiCall::start_ns, &ApiCall::end_ns, &ApiCall::correlation_id>;
using LaunchStackList =
    CompactList<LaunchStack, &LaunchStack::time_ns, &LaunchStack::correlation_id,
                &LaunchStack::stack, &LaunchStack::python_stack>;
using KernelList = CompactList<Kernel, &Kernel::start_ns, &Kernel::end_ns, &Kernel::completed_ns,
                               &Kernel::grid_id, &Kernel::correlation_id>;
using MemcpyList = CompactList<Memcpy, &Memcpy::start_ns, &Memcpy::end_ns, &Memcpy::size_bytes,
                               &Memcpy::correlation_id>;
using MemsetList = CompactList<Memset, &Memset::start_ns, &Memset::end_ns, &Memset::size_bytes,
                               &Memset::correlation_id>;
using SynchronizationList =
    CompactList<Synchronization, &Synchronization::start_ns, &Synchronization::end_ns,
                &Synchronization::event_sync_id, &Synchronization::correlation_id>;
using GraphLaunchList = CompactList<GraphLaunch, &GraphLaunch::start_ns, &GraphLaunch::end_ns,
                                    &GraphLaunch::correlation_id>;

using SampleList =
    CompactList<Owned<CpuSample>, &CpuSample::time_ns, &CpuSample::tid, &CpuSample::cpu,
                &CpuSample::stack, &CpuSample::weight, &CpuSample::python_stack>;

template <typename Event>
struct LoadedListOf {
  using Type = EventList<Event>;
};
#define XPU_LOADED_AS(Event, List) \
  template <>                      \
  struct LoadedListOf<Event> {     \
    using Type = List;             \
  };
XPU_LOADED_AS(ApiCall, ApiCallList)
XPU_LOADED_AS(LaunchStack, LaunchStackList)
XPU_LOADED_AS(Kernel, KernelList)
XPU_LOADED_AS(Memcpy, MemcpyList)
XPU_LOADED_AS(Memset, MemsetList)
XPU_LOADED_AS(Synchronization, SynchronizationList)
XPU_LOADED_AS(GraphLaunch, GraphLaunchList)
XPU_LOADED_AS(CpuSample, SampleList)
XPU_LOADED_AS(ProbeHit, EventList<Owned<ProbeHit>>)
XPU_LOADED_AS(OffCpuWait, EventList<Owned<OffCpuWait>>)
XPU_LOADED_AS(OffCpuSum, EventList<Owned<OffCpuSum>>)
XPU_LOADED_AS(AllocatorEvent, EventList<Owned<AllocatorEvent>>)
#undef XPU_LOADED_AS

struct LoadedEvents {
#define XPU_LIST(Event, list) LoadedListOf<Event>::Type list;
  XPU_EVENT_LISTS(XPU_LIST)
#undef XPU_LIST
};

// Calls visit(list, list of `more`) for each kind of event; `more` is an EventBatch or another of
// these.
template <typename More, typename Visit>
void VisitBoth(LoadedEvents& events, More& more, Visit&& visit) {
#define XPU_VISIT(Event, list) visit(events.list, more.list);
  XPU_EVENT_LISTS(XPU_VISIT)
#undef XPU_VISIT
}

// Sorts each list by time. Writers promise no order.
// By their events' first time. Events without one, events of one time and the work on the GPU,
// whose order the correlation makes, keep the order of the file.
void OrderByTime(LoadedEvents& events);

}  // namespace xpu
