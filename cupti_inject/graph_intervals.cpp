#include "cupti_inject/graph_intervals.h"

#include <cerrno>

#include <sys/mman.h>

#include "cupti_inject/cuda_driver.h"
#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {
namespace {

constexpr uint32_t kWorkKinds[] = {cupti::kKindConcurrentKernel, cupti::kKindMemcpy,
                                   cupti::kKindMemcpy2, cupti::kKindMemset};

// Of the driver.
constexpr int kNotReady = 600;
constexpr unsigned kNonBlockingStream = 1;
constexpr int kRelaxedCapture = 2;

// Values of a thread's word: in no replay, in one that is not timed, in that of a slot.
constexpr uint32_t kNoReplay = 0;
constexpr uint32_t kUntimed = 1;
constexpr uint32_t kFirstSlot = 2;

// Elapsed times are floats of milliseconds: after 1 s they are exact to 60 ns.
constexpr uint64_t kAnchorPeriodNs = 1'000'000'000;
constexpr uint64_t kAnchorPatienceNs = 500'000;
constexpr int kAnchorTries = 5;
constexpr uint64_t kGoodAnchorNs = 10'000;

constexpr uint64_t kDestroyPatienceNs = 20'000'000;
constexpr uint64_t kDestroyStepNs = 100'000;

struct Parameters {  // of cuGraphLaunch
  void* graph_exec;
  void* stream;
};

bool FindAll(void* library, GraphDriver& driver) {
  return FindFunction(library, "cuStreamGetCtx", &driver.stream_context) &&
         FindFunction(library, "cuCtxPushCurrent_v2", &driver.push_context) &&
         FindFunction(library, "cuCtxPopCurrent_v2", &driver.pop_context) &&
         FindFunction(library, "cuStreamCreate", &driver.create_stream) &&
         FindFunction(library, "cuStreamDestroy_v2", &driver.destroy_stream) &&
         FindFunction(library, "cuEventCreate", &driver.create_event) &&
         FindFunction(library, "cuEventDestroy_v2", &driver.destroy_event) &&
         FindFunction(library, "cuEventRecord", &driver.record_event) &&
         FindFunction(library, "cuEventRecord_ptsz", &driver.record_event_per_thread) &&
         FindFunction(library, "cuEventQuery", &driver.query_event) &&
         (FindFunction(library, "cuEventElapsedTime_v2", &driver.elapsed_ms) ||
          FindFunction(library, "cuEventElapsedTime", &driver.elapsed_ms)) &&
         FindFunction(library, "cuStreamIsCapturing", &driver.is_capturing) &&
         FindFunction(library, "cuStreamIsCapturing_ptsz", &driver.is_capturing_per_thread) &&
         FindFunction(library, "cuThreadExchangeStreamCaptureMode", &driver.exchange_capture_mode);
}

// While it exists `context` is the thread's current one.
class Current {
 public:
  Current(const GraphDriver& driver, void* context)
      : driver_(driver), ok_(driver.push_context(context) == 0) {}
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    void* popped = nullptr;
    if (ok_) driver_.pop_context(&popped);
  }
  bool ok() const { return ok_; }

 private:
  const GraphDriver& driver_;
  bool ok_;
};

}  // namespace

bool GraphDriver::Find() {
  void* library = LoadedDriver();
  return library != nullptr && FindAll(library, *this);
}

bool GraphIntervals::IsOffDuringReplays(uint32_t kind) {
  for (const uint32_t one : kWorkKinds) {
    if (one == kind) return true;
  }
  return false;
}

bool GraphIntervals::Open(RingProducer* ring, ActivityDrain* drain,
                          const cupti::Functions* functions) {
  ring_ = ring;
  drain_ = drain;
  functions_ = functions;
  if (!driver_.Find()) return false;
  // Else a query of ours would break a capture that another thread has begun in the global mode.
  int mode = kRelaxedCapture;
  if (driver_.exchange_capture_mode(&mode) != 0) return false;
  slots_ = static_cast<Slot*>(MapZeroed(kSlots * sizeof(Slot)));
  return slots_ != nullptr;
}

void GraphIntervals::Close() {
  if (slots_ != nullptr) munmap(slots_, kSlots * sizeof(Slot));
  slots_ = nullptr;
}

// Those of a replay that a thread is in stay.
void GraphIntervals::DestroyEvents() {
  const Locked locked(collecting_);
  for (uint32_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots_[i];
    const State state = slot.state.load(std::memory_order_acquire);
    if ((state != State::kFree && state != State::kPending) || !Claim(slot, state, nullptr)) {
      continue;
    }
    if (state == State::kPending) pending_.fetch_sub(1, std::memory_order_seq_cst);
    DestroyEventsOf(slot);
    Release(slot, State::kEmpty);
  }
  for (Anchor& anchor : anchors_) {
    if (anchor.context == nullptr) continue;
    const Current current(driver_, anchor.context);
    if (current.ok() && anchor.event != nullptr) driver_.destroy_event(anchor.event);
    if (current.ok()) driver_.destroy_stream(anchor.stream);
    anchor = {};
  }
}

void GraphIntervals::SwitchRecords(bool on) {
  for (const uint32_t kind : kWorkKinds) {
    const cupti::Result result =
        on ? functions_->enable_kind(kind) : functions_->disable_kind(kind);
    if (result != cupti::kSuccess) ring_->Count(wire::kCounterCuptiErrors);
  }
}

void GraphIntervals::Start() {
  const Locked locked(switching_);
  is_on_ = true;
  if (replays_ == 0) SwitchRecords(true);
}

void GraphIntervals::Stop() {
  const Locked locked(switching_);
  if (is_on_ && replays_ == 0) SwitchRecords(false);
  is_on_ = false;
}

bool GraphIntervals::MakeEvents(Slot& slot, void* context) {
  const Current current(driver_, context);
  if (!current.ok() || driver_.create_event(&slot.start, 0) != 0) return false;
  if (driver_.create_event(&slot.end, 0) != 0) {
    driver_.destroy_event(slot.start);
    return false;
  }
  slot.context.store(context, std::memory_order_relaxed);
  return true;
}

void GraphIntervals::DestroyEventsOf(const Slot& slot) {
  const Current current(driver_, slot.context.load(std::memory_order_relaxed));
  if (!current.ok()) return;
  driver_.destroy_event(slot.start);
  driver_.destroy_event(slot.end);
}

// The caller's from now on, unless it is no longer in that state, or of another context.
bool GraphIntervals::Claim(Slot& slot, State state, void* context) {
  if (!slot.state.compare_exchange_strong(state, State::kUsed)) return false;
  const bool is_as_wanted = state == State::kEmpty || context == nullptr ||
                            slot.context.load(std::memory_order_relaxed) == context;
  if (!is_as_wanted) Release(slot, state);
  return is_as_wanted;
}

// Used by the caller from now on; kSlots: there is none. Slots are taken from the first on, so that
// few are in use after an empty one.
uint32_t GraphIntervals::TakeSlot(void* context) {
  uint32_t at = 0;
  uint32_t of_other = kSlots;
  for (; at < kSlots; ++at) {
    const State state = slots_[at].state.load(std::memory_order_acquire);
    if (state == State::kEmpty && Claim(slots_[at], state, nullptr)) break;
    if (state != State::kFree) continue;
    if (slots_[at].context.load(std::memory_order_relaxed) != context) {
      of_other = at;
    } else if (Claim(slots_[at], state, context)) {
      return at;
    }
  }
  if (at == kSlots) {
    if (of_other == kSlots || !Claim(slots_[of_other], State::kFree, nullptr)) return kSlots;
    at = of_other;
    DestroyEventsOf(slots_[at]);
  }
  if (MakeEvents(slots_[at], context)) return at;
  Release(slots_[at], State::kEmpty);
  return kSlots;
}

void GraphIntervals::Release(Slot& slot, State state) {
  slot.state.store(state, std::memory_order_release);
}

void GraphIntervals::Begin(const cupti::CallbackData& data, bool per_thread, bool is_timed,
                           uint32_t* replay) {
  const int saved_errno = errno;
  bool is_on = false;
  if (*replay == kNoReplay) {
    const Locked locked(switching_);
    is_on = is_on_;
    if (replays_++ == 0 && is_on) SwitchRecords(false);
    *replay = kUntimed;
  }
  void* stream = nullptr;
  int capturing = 0;
  if (is_on && is_timed && data.parameters != nullptr) {
    stream = static_cast<const Parameters*>(data.parameters)->stream;
    const auto ask = per_thread ? driver_.is_capturing_per_thread : driver_.is_capturing;
    void* context = data.context;
    const bool known = ask(stream, &capturing) == 0 && capturing == 0 &&
                       (!IsStreamHandle(stream) || driver_.stream_context(stream, &context) == 0);
    const uint32_t at = known && context != nullptr ? TakeSlot(context) : kSlots;
    const auto record = per_thread ? driver_.record_event_per_thread : driver_.record_event;
    if (at < kSlots && record(slots_[at].start, stream) == 0) {
      *replay = kFirstSlot + at;
    } else if (at < kSlots) {
      Release(slots_[at], State::kFree);
    }
  }
  errno = saved_errno;
}

void GraphIntervals::End(const cupti::CallbackData& data, bool per_thread, uint32_t* replay) {
  if (*replay == kNoReplay) return;
  const int saved_errno = errno;
  if (*replay >= kFirstSlot) {
    Slot& slot = slots_[*replay - kFirstSlot];
    const auto& parameters = *static_cast<const Parameters*>(data.parameters);
    const auto record = per_thread ? driver_.record_event_per_thread : driver_.record_event;
    const bool is_launched =
        data.return_value != nullptr && *static_cast<const int32_t*>(data.return_value) == 0;
    if (is_launched && record(slot.end, parameters.stream) == 0) {
      cupti::GraphTrace& trace = slot.record;
      trace = {};
      trace.kind = cupti::kKindGraphTrace;
      trace.correlation_id = data.correlation_id;
      const cupti::Functions& cupti = *functions_;
      void* const context = slot.context.load(std::memory_order_relaxed);
      if (cupti.get_graph_exec_id != nullptr) {
        cupti.get_graph_exec_id(parameters.graph_exec, &trace.graph_id);
      }
      trace.context_id = data.context_uid;
      if (context != data.context && cupti.get_context_id != nullptr) {
        cupti.get_context_id(context, &trace.context_id);
      }
      if (cupti.get_device_id != nullptr) cupti.get_device_id(context, &trace.device_id);
      if (cupti.get_stream_id != nullptr) {
        cupti.get_stream_id(context, parameters.stream, per_thread ? 1 : 0, &trace.stream_id);
      }
      trace.end_device_id = trace.device_id;
      trace.end_context_id = trace.context_id;
      Release(slot, State::kPending);
      pending_.fetch_add(1, std::memory_order_seq_cst);
    } else {
      Release(slot, State::kFree);
    }
  }
  *replay = kNoReplay;
  {
    const Locked locked(switching_);
    if (--replays_ == 0 && is_on_) SwitchRecords(true);
  }
  errno = saved_errno;
}

// Their events go with it.
void GraphIntervals::OnContextDestroyed(void* context) {
  // Not for ever: what we ask the driver meanwhile may wait for the thread that we are on.
  uint64_t waited_ns = 0;
  while (!collecting_.TryAcquire()) {
    if (waited_ns > kDestroyPatienceNs) return;
    SleepNs(kDestroyStepNs);
    waited_ns += kDestroyStepNs;
  }
  for (uint32_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots_[i];
    const State state = slot.state.load(std::memory_order_acquire);
    if ((state != State::kFree && state != State::kPending) || !Claim(slot, state, context)) {
      continue;
    }
    if (state == State::kPending) pending_.fetch_sub(1, std::memory_order_seq_cst);
    Release(slot, State::kEmpty);
  }
  for (Anchor& anchor : anchors_) {
    if (anchor.context == context) anchor = {};
  }
  collecting_.Release();
}

GraphIntervals::Anchor* GraphIntervals::AnchorOf(void* context) {
  Anchor* free = nullptr;
  for (Anchor& anchor : anchors_) {
    if (anchor.context == context) return &anchor;
    if (anchor.context == nullptr && free == nullptr) free = &anchor;
  }
  if (free == nullptr || driver_.create_stream(&free->stream, kNonBlockingStream) != 0) {
    return nullptr;
  }
  free->context = context;
  return free;
}

// The tightest of a few. Where the device does not get to it in time the earlier one stays.
void GraphIntervals::TakeAnchor(Anchor& anchor) {
  uint64_t best_ns = UINT64_MAX;
  for (int i = 0; i < kAnchorTries && best_ns > kGoodAnchorNs; ++i) {
    void* event = nullptr;
    uint64_t before_ns = 0;
    uint64_t after_ns = 0;
    if (driver_.create_event(&event, 0) != 0) break;
    bool ok = functions_->get_timestamp(&before_ns) == cupti::kSuccess &&
              driver_.record_event(event, anchor.stream) == 0;
    const uint64_t deadline_ns = MonotonicNs() + kAnchorPatienceNs;
    int result = kNotReady;
    while (ok && result == kNotReady && MonotonicNs() < deadline_ns) {
      result = driver_.query_event(event);
    }
    ok = ok && result == 0 && functions_->get_timestamp(&after_ns) == cupti::kSuccess;
    void* worse = event;
    if (ok && after_ns - before_ns < best_ns) {
      best_ns = after_ns - before_ns;
      anchor.event_ns = before_ns + best_ns / 2;
      worse = anchor.event;
      anchor.event = event;
    }
    if (worse != nullptr) driver_.destroy_event(worse);
  }
  const bool is_taken = best_ns != UINT64_MAX;
  anchor.next_ns = MonotonicNs() + (is_taken ? kAnchorPeriodNs : kCollectPeriodNs);
  if (is_taken && best_ns / 2 > error_ns_) error_ns_ = best_ns / 2;
}

bool GraphIntervals::Measure(Slot& slot, const Anchor& anchor) {
  float since_anchor_ms = 0;
  float duration_ms = 0;
  if (driver_.elapsed_ms(&since_anchor_ms, anchor.event, slot.start) != 0 ||
      driver_.elapsed_ms(&duration_ms, slot.start, slot.end) != 0) {
    return false;
  }
  constexpr double kNsPerMs = 1e6;
  const auto since_ns = static_cast<int64_t>(static_cast<double>(since_anchor_ms) * kNsPerMs);
  const auto duration_ns = static_cast<int64_t>(static_cast<double>(duration_ms) * kNsPerMs);
  if (duration_ns < 0 || static_cast<int64_t>(anchor.event_ns) + since_ns <= 0) return false;
  slot.record.start_ns = anchor.event_ns + static_cast<uint64_t>(since_ns);
  slot.record.end_ns = slot.record.start_ns + static_cast<uint64_t>(duration_ns);
  return true;
}

void GraphIntervals::CollectOne(Slot& slot) {
  void* const context = slot.context.load(std::memory_order_relaxed);
  const Current current(driver_, context);
  const int result = current.ok() ? driver_.query_event(slot.end) : -1;
  if (result == kNotReady) return;
  Anchor* anchor = result == 0 ? AnchorOf(context) : nullptr;
  if (anchor != nullptr) {
    if (MonotonicNs() >= anchor->next_ns) TakeAnchor(*anchor);
    if (anchor->event_ns == 0) return;  // perhaps the next time
  }
  if (anchor != nullptr && Measure(slot, *anchor)) {
    drain_->SendOwn(reinterpret_cast<uint8_t*>(&slot.record), sizeof(slot.record));
  } else {
    ring_->Count(wire::kCounterActivities);
    ring_->Count(wire::kCounterActivitiesDropped);
  }
  pending_.fetch_sub(1, std::memory_order_seq_cst);
  Release(slot, State::kFree);
}

void GraphIntervals::Collect() {
  const Locked locked(collecting_);
  for (uint32_t i = 0; has_pending() && i < kSlots; ++i) {
    if (slots_[i].state.load(std::memory_order_acquire) == State::kPending) CollectOne(slots_[i]);
  }
}

}  // namespace xpu::inject
