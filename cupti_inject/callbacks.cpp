#include "cupti_inject/callbacks.h"

#include <cerrno>

#include <sched.h>

#include "cupti_inject/activity_kinds.h"
#include "cupti_inject/graph_nodes.h"
#include "cupti_inject/injection.h"
#include "cupti_inject/thread_state.h"

namespace xpu::inject {
namespace {

constexpr uint32_t kMostBuffersThatWait = 256;  // 64 MiB

void WakeIdleFlusher(Injection& self) {
  if (self.flusher_idle.load(std::memory_order_seq_cst)) self.flusher_wake.Notify();
}

// Its stack now, the call itself when it returns.
void Record(Injection& self, ThreadState& thread, TrackedCall& call, const WalkRegisters& caller) {
  call.is_recorded = true;
  thread.slot->calls.store(1, std::memory_order_relaxed);
  if (self.stacks.on()) {
    const int cpu = sched_getcpu();
    call.has_stack =
        self.stacks.Take({call.start_ns, call.correlation_id, call.key, CurrentTid(thread),
                          cpu < 0 ? 0 : static_cast<uint32_t>(cpu), 0, 0},
                         caller, thread.stack);
    return;
  }
  // A recorder that has attached has no probe on this library.
  if (self.attached) return;
  call.has_stack = true;
  self.ring.Count(wire::kCounterMarkers);
  xpu_launch_marker(call.correlation_id, call.key, self.instance, self.session);
}

// What makes nodes of graphs is reported in pauses too: they may be replayed in none.
void RecordAfterAll(Injection& self, ThreadState& thread, const WalkRegisters& caller) {
  TrackedCall* call = thread.tracker.Current();
  if (call != nullptr && !call->is_recorded) Record(self, thread, *call, caller);
}

void OnEnter(Injection& self, ThreadState& thread, uint32_t correlation_id, uint32_t key,
             const WalkRegisters& caller) {
  TrackedCall* call = thread.tracker.Enter(correlation_id, key);
  if (call == nullptr) return;
  call->start_ns = MonotonicNs();
  const uint32_t id = key & ((1u << wire::kDomainShift) - 1);
  if (self.gate.Admit(correlation_id) || self.memory_calls.Has(key >> wire::kDomainShift, id)) {
    Record(self, thread, *call, caller);
  }
  call->waits =
      call->is_recorded && self.waits.Of(key >> wire::kDomainShift, id).kind != WaitKind::kNone;
  if (call->waits) thread.wait_delay_ns = static_cast<uint32_t>(MonotonicNs() - call->start_ns);
}

void SendWait(Injection& self, const cupti::CallbackData& data, WaitCalls::Call call,
              uint64_t duration_ns) {
  cupti::Synchronization record;
  wire::ActivityMessage message{};
  message.record_size_bytes = sizeof(record);
  self.ring.Count(wire::kCounterActivities);
  if (!self.wait_describer.Describe(data, call, duration_ns, &record) ||
      !self.ring.Send(wire::MessageKind::kActivity, message, &record, sizeof(record))) {
    self.ring.Count(wire::kCounterActivitiesDropped);
  }
}

bool IsOneOf(const uint32_t (&ids)[2], uint32_t domain, uint32_t callback_id) {
  return domain == cupti::kDomainDriver && (callback_id == ids[0] || callback_id == ids[1]);
}

bool UpdatedGraph(const Injection& self, const cupti::CallbackData& data, uint32_t domain,
                  uint32_t callback_id) {
  return IsOneOf(self.graph_update_ids, domain, callback_id) && data.parameters != nullptr &&
         data.return_value != nullptr && *static_cast<const int32_t*>(data.return_value) == 0;
}

void OnGraphLaunch(Injection& self, ThreadState& thread, const cupti::CallbackData& data,
                   uint32_t callback_id) {
  if (!self.intervals.is_open()) return;
  const bool per_thread = callback_id == self.graph_launch_ids[1];
  if (data.site == cupti::kSiteEnter) {
    const TrackedCall* call = thread.tracker.Current();
    self.intervals.Begin(data, per_thread, call != nullptr && call->is_recorded, &thread.replay);
  } else if (data.site == cupti::kSiteExit) {
    self.intervals.End(data, per_thread, &thread.replay);
    if (self.intervals.has_pending()) WakeIdleFlusher(self);
  }
}

void OnExit(Injection& self, ThreadState& thread, const cupti::CallbackData& data, uint32_t key) {
  TrackedCall call;
  if (!thread.tracker.Exit(data.correlation_id, key, &call)) return;
  if (thread.tracker.depth == 0) thread.slot->calls.store(0, std::memory_order_relaxed);
  wire::ApiCallMessage message{};
  message.domain = key >> wire::kDomainShift;
  message.callback_id = key & ((1u << wire::kDomainShift) - 1);
  message.correlation_id = data.correlation_id;
  message.tid = CurrentTid(thread);
  message.start_ns = call.start_ns;
  message.end_ns = MonotonicNs();
  if (data.return_value != nullptr) {
    message.return_value = *static_cast<const int32_t*>(data.return_value);
  }
  message.graph_nodes = call.graph_nodes;
  if (call.graph_nodes > 0) ForgetNodes(self, call.correlation_id);
  if (!call.is_recorded) return;
  self.ring.Count(wire::kCounterCalls);
  if (!self.ring.Send(wire::MessageKind::kApiCall, message)) {
    self.ring.Count(call.has_stack ? wire::kCounterCallsDropped : wire::kCounterCallsLost);
  }
  if (call.waits) {
    SendWait(self, data, self.waits.Of(message.domain, message.callback_id),
             message.end_ns - message.start_ns - thread.wait_delay_ns);
  }
}

// True: it is about what is sampled alone.
bool SampleResource(Injection& self, uint32_t callback_id, const cupti::ResourceData& data) {
  const int saved_errno = errno;
  const auto* module = static_cast<const cupti::ModuleData*>(data.descriptor);
  switch (callback_id) {
    case cupti::kResourceContextCreated:
      self.sampling.OnContextCreated(data.context);
      break;
    case cupti::kResourceContextDestroyStarting:
      self.sampling.OnContextDestroyed(data.context);
      break;
    case cupti::kResourceModuleLoaded:
      if (module != nullptr) self.sampling.OnModuleLoaded(*module);
      break;
    case cupti::kResourceModuleUnloadStarting:
      if (module != nullptr) self.sampling.OnModuleUnloaded(*module);
      break;
    default:
      return false;
  }
  errno = saved_errno;
  return callback_id != cupti::kResourceContextCreated;
}

void OnResource(Injection& self, ThreadState& thread, uint32_t callback_id, const void* data,
                const WalkRegisters& caller) {
  if (self.sampling.is_open() &&
      SampleResource(self, callback_id, *static_cast<const cupti::ResourceData*>(data))) {
    return;
  }
  if (callback_id == cupti::kResourceContextCreated) {
    self.context_exists.store(true, std::memory_order_release);
    self.flusher_wake.Notify();
    return;
  }
  if (callback_id == cupti::kResourceContextDestroyStarting) {
    if (self.intervals.is_open()) {
      self.intervals.OnContextDestroyed(static_cast<const cupti::ResourceData*>(data)->context);
    }
    return;
  }
  const void* graph = static_cast<const cupti::ResourceData*>(data)->descriptor;
  if (graph == nullptr) return;
  RecordAfterAll(self, thread, caller);
  OnGraphNode(self, callback_id, *static_cast<const cupti::GraphData*>(graph));
}

// While our own thread waits in LeaveCupti: CUPTI may be finalized at the end of a call; of a
// driver call inside a runtime call, at the end of that one. Of a program that replays graphs, by
// the thread that does.
void LeaveAtEndOfCall(Injection& self, ThreadState& thread, const cupti::CallbackData& data,
                      uint32_t key) {
  if (thread.session != self.number) thread.BeginSession(self.number);
  if (data.site == cupti::kSiteEnter) {
    self.gate.Admit(data.correlation_id);
    thread.tracker.Enter(data.correlation_id, key);
  }
  if (data.site != cupti::kSiteExit) return;
  TrackedCall call;
  if (!thread.tracker.Exit(data.correlation_id, key, &call)) return;
  const uint32_t graph_thread = g_process.graph_thread.load();
  if (graph_thread != 0 && graph_thread != CurrentTid(thread)) return;
  Leaving leaving = Leaving::kWanted;
  if (!self.leaving.compare_exchange_strong(leaving, Leaving::kBegun)) return;
  const int saved_errno = errno;
  // Another thread may have begun its first replay meanwhile.
  const bool done =
      g_process.graph_thread.load() == graph_thread && self.cupti.finalize() == cupti::kSuccess;
  self.leaving.store(done ? Leaving::kDone : Leaving::kFailed);
  self.left.Notify();
  errno = saved_errno;
}

// They would fill the child's memory (57 MB/s, an H200). A child that makes none must not touch
// CUPTI, whose locks a thread of the parent may have held.
void StopRecordsOfParent(const Injection& self) {
  const int saved_errno = errno;
  const bool is_mine = g_process.makes_records_of_parent.exchange(false);
  const bool may_disable = self.cupti.disable_kind != nullptr && !self.sampling.has_failed();
  if (is_mine && may_disable) DisableActivities(self.cupti);
  errno = saved_errno;
}

}  // namespace

// Not inlined: its caller is CUPTI.
__attribute__((noinline)) void OnCallback(void* user_data, uint32_t domain, uint32_t callback_id,
                                          const void* data) {
  Injection& self = g_injection;
  ThreadState& thread = t_thread;
  const Inside inside(thread);
  const uint32_t key = domain << wire::kDomainShift | callback_id;
  const auto mark = reinterpret_cast<uintptr_t>(user_data);
  if (mark != self.mark.load(std::memory_order_relaxed)) [[unlikely]] {
    const bool is_call = domain == cupti::kDomainDriver || domain == cupti::kDomainRuntime;
    if (is_call && mark == self.number && self.leaving.load() == Leaving::kWanted) {
      if (IsOneOf(self.graph_launch_ids, domain, callback_id)) NoteGraphThread(thread);
      LeaveAtEndOfCall(self, thread, *static_cast<const cupti::CallbackData*>(data), key);
    }
    if (g_process.makes_records_of_parent.load()) StopRecordsOfParent(self);
    return;
  }
  if (thread.session != self.number) [[unlikely]]
    thread.BeginSession(self.number);
  const bool launches_graph = IsOneOf(self.graph_launch_ids, domain, callback_id);
  if (launches_graph) NoteGraphThread(thread);
  if (self.ring.closed()) return;
  if (domain == cupti::kDomainResource) {
    OnResource(self, thread, callback_id, data, CallerRegisters());
    return;
  }
  if (domain != cupti::kDomainDriver && domain != cupti::kDomainRuntime) return;
  const auto& call = *static_cast<const cupti::CallbackData*>(data);
  if (self.profiler_starts.Has(domain, callback_id)) return self.gate.SetProfiler(true);
  if (self.profiler_stops.Has(domain, callback_id)) return self.gate.SetProfiler(false);
  if (call.site == cupti::kSiteEnter) {
    OnEnter(self, thread, call.correlation_id, key, CallerRegisters());
    if (launches_graph) OnGraphLaunch(self, thread, call, callback_id);
  } else if (call.site == cupti::kSiteExit) {
    if (launches_graph) OnGraphLaunch(self, thread, call, callback_id);
    if (UpdatedGraph(self, call, domain, callback_id)) {
      RecordAfterAll(self, thread, CallerRegisters());
      OnGraphUpdated(self, *static_cast<const cupti::GraphExecUpdateParameters*>(call.parameters));
    }
    OnExit(self, thread, call, key);
  }
}

// On the thread that needs room for a record: the program's, or CUPTI's own.
void OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  Injection& self = g_injection;
  const int saved_errno = errno;
  const Inside inside(t_thread);
  const bool active = self.active.load(std::memory_order_relaxed);
  *buffer = active ? self.pool.Take() : BufferPool::TakeAlone();
  if (g_process.has_cupti_of_parent.load(std::memory_order_relaxed)) {
    g_process.makes_records_of_parent.store(true);
  }
  // Without a buffer CUPTI drops records; before 12.9 it may crash, as the program would next.
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as fit
  if (active && *buffer != nullptr) {
    self.ring.Count(wire::kCounterBuffersRequested);
    WakeIdleFlusher(self);
  }
  errno = saved_errno;
}

// On CUPTI's thread; in old versions also on the thread that flushes or fills a buffer.
void OnBufferCompleted(void* context, uint32_t stream_id, uint8_t* buffer, size_t /*size*/,
                       size_t valid_size) {
  Injection& self = g_injection;
  const Inside inside(t_thread);
  // Else the program ends, or this is a forked child: the pool is not ours to touch.
  if (!self.active.load(std::memory_order_relaxed)) {
    BufferPool::GiveAlone(buffer);
    return;
  }
  // Of a session that ended before CUPTI gave it back, or of none: its ids are others.
  if (!self.pool.IsTaken(buffer)) {
    if (!BufferPool::GiveAlone(buffer)) BufferPool::Unmap(buffer);
    return;
  }
  const int saved_errno = errno;
  self.ring.Count(wire::kCounterBuffersCompleted);
  if (!self.ring.closed()) {
    // While a recorder is slow, not more than some memory waits for it; what is too much is
    // counted.
    const bool may_wait =
        self.pool.outstanding() < kMostBuffersThatWait && !IsInsideCall(self, t_thread);
    self.drain.Drain(buffer, valid_size, may_wait);
    size_t dropped = 0;
    const bool is_known =
        self.cupti.get_dropped(context, stream_id, &dropped) == cupti::kSuccess && dropped > 0;
    // After an attach CUPTI drops what was under way when records were switched on, and at its end
    // what is under way when they are switched off: none of that is recorded work.
    if (is_known && (!self.attached || self.gate.is_on())) {
      self.ring.Count(wire::kCounterCuptiDropped, dropped);
    }
  }
  self.pool.Give(buffer, valid_size);
  errno = saved_errno;
}

}  // namespace xpu::inject
