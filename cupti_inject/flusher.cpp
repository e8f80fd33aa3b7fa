#include "cupti_inject/flusher.h"

#include <cinttypes>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <pthread.h>
#include <sys/prctl.h>

#include "cupti_inject/activity_kinds.h"
#include "cupti_inject/leaving.h"
#include "cupti_inject/session.h"
#include "cupti_inject/thread_state.h"
#include "cupti_inject/torch_allocator.h"

namespace xpu::inject {
namespace {

// What a kill can lose; each flush costs the program's threads a new buffer each (about 30 us).
constexpr uint64_t kFlushPeriodNs = 200'000'000;
// While CUPTI keeps everything back and nothing new is launched: one long kernel.
constexpr uint64_t kSlowestFlushPeriodNs = 1'600'000'000;
constexpr uint64_t kClockPeriodNs = 1'000'000'000;
// The end of a recording before that of the program: how soon it is seen, and what it may wait for.
constexpr uint64_t kLookForEndNs = 50'000'000;
constexpr uint64_t kLookForLastNs = 1'000'000'000;
constexpr uint64_t kRestPatienceNs = 1'000'000'000;
constexpr uint64_t kRestStepNs = 10'000'000;
// Work of other streams, once some has ended that was launched after all of it.
constexpr uint64_t kOtherStreamsNs = 50'000'000;
// By then calls that an attach found under way have ended, but for those that wait for the GPU.
constexpr uint64_t kSettledAfterNs = 1'000'000'000;
// For calls that are recorded and have not returned, at the end of a session.
constexpr uint64_t kCallsPatienceNs = 50'000'000;
constexpr uint64_t kCallsStepNs = 200'000;
// CUPTI adds up what it has decoded until then. What a kill can lose.
constexpr uint64_t kSamplesPeriodNs = 1'000'000'000;
constexpr int kClockTries = 5;
constexpr uint64_t kExitPatienceNs = 5'000'000'000;
// A signal handler that exits from inside a CUDA call: CUPTI may be waiting for this very thread.
constexpr uint64_t kExitInsideCallPatienceNs = 500'000'000;
// After an attach CUPTI may be waiting for the GPU, which can take for ever.
constexpr uint64_t kExitInFirstCallPatienceNs = 1'000'000'000;
// A new thread can wait for a processor for hundreds of milliseconds where forty others want it.
// One that never begins does not hold the program.
constexpr uint64_t kStartPatienceNs = 2'000'000'000;
constexpr size_t kStackBytes = size_t{512} << 10;  // CUPTI runs on it; touched as needed

// The tightest of a few, so that a preemption between the reads does not blur it.
bool SendClockPair(Injection& self) {
  wire::ClockPairMessage best{};
  best.after_ns = UINT64_MAX;
  for (int i = 0; i < kClockTries; ++i) {
    wire::ClockPairMessage pair{};
    pair.before_ns = MonotonicNs();
    if (self.cupti.get_timestamp(&pair.cupti_ns) != cupti::kSuccess || pair.cupti_ns == 0) {
      return false;
    }
    pair.after_ns = MonotonicNs();
    if (pair.after_ns - pair.before_ns < best.after_ns - best.before_ns) {
      best.before_ns = pair.before_ns;
      best.cupti_ns = pair.cupti_ns;
      best.after_ns = pair.after_ns;
    }
  }
  if (self.ring.Send(wire::MessageKind::kClockPair, best)) return true;
  self.ring.Count(wire::kCounterOthersDropped);
  return false;
}

// True: something has ended on the GPU since the hang was seen.
bool EndHang(Injection& self) {
  if (self.hang_since_ns == 0 || self.drain.ended_count() == self.ended_before_hang) return false;
  self.hang_since_ns = 0;
  SendDetail(self, wire::DetailKind::kHang, 0, "");
  return true;
}

class Flusher {
 public:
  // `peer`: nullptr where there is no connection.
  Flusher(Injection& self, const WakeDescriptor* peer) : self_(self), peer_(peer) {}

  // Returns the state in which the work ends.
  wire::State Run() {
    while (!Ending()) {
      const uint32_t ticket = self_.flusher_wake.Ticket();
      if (Ending()) break;
      uint64_t wait_ns = Work();
      const bool looks = self_.gate.may_end() || peer_ != nullptr;
      if (looks && wait_ns > kLookForEndNs) wait_ns = kLookForEndNs;
      Sleep(ticket, wait_ns);
    }
    const bool is_abandoned = abandoned_ || self_.is_taken_over.load(std::memory_order_acquire);
    return is_abandoned ? wire::State::kAbandoned : wire::State::kFinished;
  }

  // Nothing new comes but what the gate leaves out, of kinds that are still on; what runs yet may
  // end in a moment, and keeps its times then. True: all of it has ended.
  bool FetchTheRest() {
    uint64_t deadline_ns = MonotonicNs() + kRestPatienceNs;
    bool has_later = false;
    while (self_.pool.outstanding() > 0 && MonotonicNs() < deadline_ns &&
           !self_.stop.load(std::memory_order_acquire)) {
      if (self_.cupti.flush_all(0) != cupti::kSuccess) return false;
      if (self_.keeps_kinds_on && self_.gate.has_later() && !has_later) {
        has_later = true;
        deadline_ns = MonotonicNs() + kOtherStreamsNs;
      }
      if (self_.pool.outstanding() > 0) SleepNs(kRestStepNs);
    }
    CollectReplays(deadline_ns);
    return self_.pool.outstanding() == 0;
  }

 private:
  void CollectReplays(uint64_t deadline_ns) {
    if (!self_.intervals.is_open()) return;
    self_.intervals.Collect();
    while (self_.intervals.has_pending() && MonotonicNs() < deadline_ns &&
           !self_.stop.load(std::memory_order_acquire)) {
      SleepNs(kRestStepNs);
      self_.intervals.Collect();
    }
  }

  void Sleep(uint32_t ticket, uint64_t wait_ns) {
    do {
      self_.flusher_wake.Wait(ticket, wait_ns < kLookForLastNs ? wait_ns : kLookForLastNs);
      if (IsLastThread()) EndWithProgram();
    } while (wait_ns == kForever && self_.flusher_wake.Ticket() == ticket && !Ending());
  }

  // The thread goes on as at the program's exit, and can be ended as any exit can.
  void EndWithProgram() {
    self_.stop.store(true, std::memory_order_release);
    sigset_t ends;
    sigemptyset(&ends);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, number);
    pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
  }

  bool Ending() const {
    return self_.stop.load(std::memory_order_acquire) || self_.ring.closed() || self_.gate.ends() ||
           abandoned_;
  }

  // Whether the recorder was killed: then nobody tells us to stop, and the program would pay for
  // records that nobody takes until its end. Only time between two looks counts that is as short
  // as usual, not that in which both processes were frozen.
  bool IsAlone(uint64_t now_ns) {
    const uint32_t heartbeat = self_.ring.heartbeat();
    const uint64_t since_look_ns = now_ns - looked_ns_;
    looked_ns_ = now_ns;
    if (heartbeat != heartbeat_) alone_ns_ = 0;
    heartbeat_ = heartbeat;
    alone_ns_ += since_look_ns < kSlowestFlushPeriodNs ? since_look_ns : kSlowestFlushPeriodNs;
    return self_.ring.patience_ns() != 0 && alone_ns_ > self_.ring.patience_ns();
  }

  // Does what is due; returns how long to wait for the next.
  uint64_t Work() {
    self_.stacks.Refresh();
    FollowTorchAllocator(self_);
    if (peer_ != nullptr && !peer_->IsHeard()) {
      abandoned_ = true;
      return 0;
    }
    if (!self_.context_exists.load(std::memory_order_acquire)) return WhenIdle(kForever);
    const uint64_t now_ns = MonotonicNs();
    // What woke us is a buffer just asked for: let it fill.
    if (idle_) next_flush_ns_ = now_ns + kFlushPeriodNs;
    if (IsAlone(now_ns)) {
      abandoned_ = true;
      return 0;
    }
    if (now_ns >= next_clock_ns_ && SendClockPair(self_)) next_clock_ns_ = now_ns + kClockPeriodNs;
    if (now_ns >= next_flush_ns_) Flush(now_ns);
    if (now_ns >= next_samples_ns_) FetchSamples();
    if (self_.intervals.has_pending()) self_.intervals.Collect();
    if (now_ns - began_ns_ > kSettledAfterNs) self_.gate.Settle();
    return WhenIdle(next_flush_ns_ - now_ns);
  }

  void Flush(uint64_t now_ns) {
    const uint64_t calls = self_.ring.Counted(wire::kCounterCalls);
    const uint32_t before = self_.pool.outstanding();
    if (before > 0 && self_.cupti.flush_all(0) != cupti::kSuccess) {
      self_.ring.Count(wire::kCounterCuptiErrors);
    }
    if (calls != flushed_calls_) last_call_ns_ = now_ns;
    const bool progress = calls != flushed_calls_ || self_.pool.outstanding() < before;
    flushed_calls_ = calls;
    period_ns_ = progress ? kFlushPeriodNs : period_ns_ * 2;
    if (period_ns_ > kSlowestFlushPeriodNs) period_ns_ = kSlowestFlushPeriodNs;
    next_flush_ns_ = now_ns + period_ns_;
    LookForHang(now_ns);
  }

  // A buffer that does not come back although everything was flushed again and again holds work
  // that has not ended, and maybe much that has. While calls return, that may be ever newer work of
  // a GPU that is always busy. Work that a forced flush brings without a time has not ended, and
  // loses its time: so there is one in each hang, and the next hang must be longer.
  void LookForHang(uint64_t now_ns) {
    const uint64_t since_ns = self_.hang_since_ns;
    if (EndHang(self_)) longest_hang_ns_ = now_ns - since_ns;
    const uint64_t hang_ns = self_.mapped.header->hang_ns;
    const uint64_t longest_ns =
        longest_hang_ns_ > self_.drain.longest_ns() ? longest_hang_ns_ : self_.drain.longest_ns();
    const uint64_t oldest_ns = self_.pool.OldestNs();
    const uint64_t still_since_ns = oldest_ns > last_call_ns_ ? oldest_ns : last_call_ns_;
    if (hang_ns == 0 || self_.hang_since_ns != 0 || still_since_ns > now_ns ||
        now_ns - still_since_ns < hang_ns + longest_ns) {
      return;
    }
    self_.hang_since_ns = still_since_ns;
    SendDetail(self_, wire::DetailKind::kHang, still_since_ns, "");
    self_.cupti.flush_all(cupti::kFlushForced);
    self_.ended_before_hang = self_.drain.ended_count();
  }

  void FetchSamples() {
    has_samples_ = self_.sampling.Fetch();
    next_samples_ns_ = MonotonicNs() + kSamplesPeriodNs;
  }

  // `otherwise`, or forever when CUPTI holds no buffer: the next request wakes us.
  uint64_t WhenIdle(uint64_t otherwise) {
    if (has_samples_) return otherwise == kForever ? kSamplesPeriodNs : otherwise;
    self_.flusher_idle.store(true, std::memory_order_seq_cst);
    const bool has_replays = self_.intervals.has_pending();
    idle_ = !has_replays && (otherwise == kForever || self_.pool.outstanding() == 0);
    if (idle_) return kForever;
    self_.flusher_idle.store(false, std::memory_order_relaxed);
    constexpr uint64_t kPeriodNs = GraphIntervals::kCollectPeriodNs;
    return has_replays && otherwise > kPeriodNs ? kPeriodNs : otherwise;
  }

  Injection& self_;
  const WakeDescriptor* peer_;
  const uint64_t began_ns_ = MonotonicNs();
  uint64_t next_clock_ns_ = 0;
  uint64_t next_flush_ns_ = 0;
  uint64_t next_samples_ns_ = 0;
  uint64_t period_ns_ = kFlushPeriodNs;
  uint64_t flushed_calls_ = 0;
  uint64_t longest_hang_ns_ = 0;
  uint64_t last_call_ns_ = 0;  // when a call was last seen to have returned
  uint64_t looked_ns_ = MonotonicNs();
  uint64_t alone_ns_ = 0;
  uint32_t heartbeat_ = 0;
  bool abandoned_ = false;
  bool idle_ = true;
  bool has_samples_ = false;  // so did the last fetch
};

void FlushLast(Injection& self) {
  const bool closed = self.ring.closed();
  self.sampling.Stop();
  // First, so that the flush does not fill a new buffer with records of its own cost.
  if (!self.sampling.has_failed()) self.cupti.disable_kind(cupti::kKindOverhead);
  // Running kernels come back without an end, and never again: only now.
  if (self.cupti.flush_all(cupti::kFlushForced) != cupti::kSuccess) {
    self.ring.Count(wire::kCounterCuptiErrors);
  }
  EndHang(self);
  if (!closed && self.context_exists.load(std::memory_order_acquire)) SendClockPair(self);
}

void SetFinished(Injection& self) {
  Deactivate(self);
  self.finished.store(true, std::memory_order_release);
  self.flusher_done.Notify();
}

// The last flush, then CUPTI is given back; `state`: in which it ends. On the flusher's thread, or
// at exit without one.
void FinishRecording(Injection& self, wire::State state) {
  FlushLast(self);
  TearDownCupti(self);
  Deactivate(self);
  self.ring.SetState(state);
  SetFinished(self);
}

void* RunFlusher(void* injection) {
  Injection& self = *static_cast<Injection*>(injection);
  prctl(PR_SET_NAME, "xpu-inject");
  self.flusher_started.Notify();
  Flusher flusher(self, nullptr);
  const wire::State state = flusher.Run();
  if (state == wire::State::kFinished && self.gate.ends() && !self.ring.closed()) {
    flusher.FetchTheRest();
  }
  FinishRecording(self, state);
  EndSession(self);
  return nullptr;
}

void OnExit() {
  if (g_process.exits.exchange(true)) return;  // one of them waits
  if (g_injection.active.load()) StopFlusher(g_injection);
}

// What was launched is not to be cut off between its stack and its record.
void WaitForRecordedCalls(const Injection& self) {
  SleepNs(Presence::kSettleNs);
  const uint64_t deadline_ns = MonotonicNs() + kCallsPatienceNs;
  while (g_process.presence.IsAnyInCall() && MonotonicNs() < deadline_ns &&
         !self.stop.load(std::memory_order_acquire)) {
    SleepNs(kCallsStepNs);
  }
}

void NoteEarlierWork(Injection& self) {
  const uint64_t count = self.gate.earlier();
  if (count == 0) return;
  char text[128];
  std::snprintf(text, sizeof(text),
                "%" PRIu64 " %s launched before the recording began %s left out", count,
                count == 1 ? "operation" : "operations", count == 1 ? "was" : "were");
  SendDetail(self, wire::DetailKind::kNote, 0, text);
}

void NoteIntervals(Injection& self) {
  if (!self.intervals.is_open() || self.intervals.error_ns() == 0) return;
  char text[160];
  std::snprintf(text, sizeof(text),
                "replays of graphs are timed by events around them, to within %" PRIu64 " ns",
                self.intervals.error_ns());
  SendDetail(self, wire::DetailKind::kNote, 0, text);
}

}  // namespace

void RunAttached(Injection& self, const WakeDescriptor& peer) {
  Flusher flusher(self, &peer);
  const wire::State state = flusher.Run();
  // What CUPTI has dropped of recorded work is counted with the buffers of this flush.
  self.cupti.flush_all(0);
  self.gate.Shut();
  WaitForRecordedCalls(self);
  if (self.intervals.is_open()) self.intervals.Stop();
  self.keeps_kinds_on = KeepsKindsOn(self);
  if (!self.keeps_kinds_on) DisableActivities(self.cupti);
  const bool is_idle = flusher.FetchTheRest();
  FlushLast(self);
  NoteEarlierWork(self);
  NoteIntervals(self);
  // While callbacks still say when a context is destroyed.
  if (self.intervals.is_open()) self.intervals.DestroyEvents();
  self.ring.SetState(state);
  LeaveCupti(self, is_idle);
  SetFinished(self);
}

bool StartFlusher(Injection& self) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  // Blocked before it exists: no signal of the program may ever be handled on this thread.
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Signal& has_begun = self.flusher_started;
  const uint32_t ticket = has_begun.Ticket();
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, &RunFlusher, &self) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // What only the beginning of a thread calls (rseq, prctl) is after it when the program goes on,
  // and perhaps forbids such calls to all of its threads.
  const uint64_t deadline_ns = MonotonicNs() + kStartPatienceNs;
  for (uint64_t now_ns = MonotonicNs();
       started && has_begun.Ticket() == ticket && now_ns < deadline_ns; now_ns = MonotonicNs()) {
    has_begun.Wait(ticket, deadline_ns - now_ns);
  }
  pthread_attr_destroy(&attributes);
  return started;
}

bool HandleExit(SetUpStep step) {
  bool& is_there = g_process.has_exit_handler[static_cast<size_t>(step)];
  // Refused once the last handler has run.
  if (!is_there) is_there = std::atexit(&OnExit) == 0;
  return is_there;
}

void StopFlusher(Injection& self) {
  self.stop.store(true, std::memory_order_release);
  self.left.Notify();
  if (!self.has_flusher) {
    FinishRecording(self, wire::State::kFinished);
    return;
  }
  self.flusher_wake.Notify();
  const bool inside_call = IsInsideCall(self, CurrentThread());
  const uint64_t first_call_ns = g_process.first_call_ns.load();
  const uint64_t deadline_ns =
      first_call_ns != 0
          ? first_call_ns + kExitInFirstCallPatienceNs
          : MonotonicNs() + (inside_call ? kExitInsideCallPatienceNs : kExitPatienceNs);
  while (true) {
    const uint32_t ticket = self.flusher_done.Ticket();
    const uint64_t now_ns = MonotonicNs();
    if (self.finished.load(std::memory_order_acquire) || now_ns >= deadline_ns) return;
    self.flusher_done.Wait(ticket, deadline_ns - now_ns);
  }
}

}  // namespace xpu::inject
