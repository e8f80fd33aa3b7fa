#include "cupti_inject/session.h"

#include <new>

#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include "cupti_inject/loaded_files.h"
#include "cupti_inject/torch_allocator.h"

namespace xpu::inject {

constinit Injection g_injection;
constinit Process g_process;

namespace {

constexpr uint64_t kLongestLookNs = 20'000'000;
// A recorder that lives looks into the ring far more often. The one that attaches waits meanwhile.
constexpr uint64_t kSilenceNs = 800'000'000;
constexpr uint64_t kEndPatienceNs = 400'000'000;

uint64_t RandomNumber() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number) || number == 0) {
    // Before the machine's entropy is there: unique enough among the processes of one recording.
    number = MonotonicNs() << 20 ^ static_cast<uint64_t>(getpid()) ^ 0x9e3779b97f4a7c15;
  }
  return number;
}

// The child shares our ring but not our thread: it must not write. A recorder may attach to it if
// CUPTI was not set up. Locks may be held in its copy and memory be in use: it is left as it is,
// and g_injection made new.
void OnForkedChild() {
  ReturnToLoadedFilesInChild();
  g_process.first_call_ns.store(0);
  if (g_process.has_cupti.exchange(false)) g_process.has_cupti_of_parent.store(true);
  Deactivate(g_injection);
  g_injection.leaving.store(Leaving::kNot);  // cuptiFinalize would wait for CUPTI's threads
  g_process.nvtx.active.store(false, std::memory_order_relaxed);
  // Else neither the recorder nor the program would see the other one's end.
  for (std::atomic<int>* end_plus_1 : {&g_process.peer_plus_1, &g_process.offered_plus_1}) {
    const int plus_1 = end_plus_1->exchange(0);
    if (plus_1 > 0) close(plus_1 - 1);
  }
  g_process.presence.Reset();
  g_process.has_session.store(false);
  g_process.connection.store(Connection::kNone);  // where CUDA is not initialized yet, it may be
  t_thread.tid = 0;
  t_thread.slot = nullptr;
}

// A thread that stands still inside (a debugger, a stopped process) is waited for.
void WaitUntilNobodyIsInside() {
  SleepNs(Presence::kSettleNs);
  for (uint64_t step_ns = 100'000; g_process.presence.IsAnyInside();) {
    SleepNs(step_ns);
    if (step_ns < kLongestLookNs) step_ns *= 2;
  }
}

// Calls `use` with the session that the environment began, where there is one; its memory stays
// meanwhile.
template <typename Use>
void WithConnectedSession(Use&& use) {
  const Inside inside(t_thread);
  Injection& self = g_injection;
  if (!g_process.has_session.load() || self.attached) return;
  if (self.active.load() || g_process.nvtx.active.load()) use(self);
}

// False: nobody may say that the recorder is gone.
bool ReadHeartbeat(uint32_t* heartbeat) {
  bool may_be_alone = false;
  WithConnectedSession([&](Injection& self) {
    *heartbeat = self.ring.heartbeat();
    may_be_alone = self.ring.closed() || self.ring.patience_ns() != 0;
  });
  return may_be_alone;
}

// The flusher of a program that leaves the GPU alone sleeps, and does not see the recorder die.
bool CloseSilentRing(uint32_t heartbeat) {
  bool closed = false;
  WithConnectedSession([&](Injection& self) {
    if (!self.ring.closed() && self.ring.heartbeat() != heartbeat) return;
    self.is_taken_over.store(true);
    self.mapped.header->closed.store(1);
    self.flusher_wake.Notify();
    closed = true;
  });
  return closed;
}

// Of NVTX alone, where CUDA was not started, or could not be watched.
bool EndSessionWithoutFlusher() {
  Injection& self = g_injection;
  // Of several that attach at once, one.
  const bool is_ours = !g_process.started.exchange(true) || g_process.is_dormant.exchange(false);
  if (!is_ours || self.active.load() || !g_process.nvtx.active.load()) return false;
  EndSession(self);
  return true;
}

}  // namespace

Injection* BeginSession(bool attached) {
  if (g_process.exits.load() || g_process.has_session.exchange(true)) return nullptr;
  g_process.presence.BeginSession();
  // Nobody else looks at more of it than at `active`, which stays false.
  Injection* self = new (&g_injection) Injection();
  self->attached = attached;
  self->number = ++g_process.sessions;
  self->instance = RandomNumber();
  return self;
}

Injection* BeginAttachedSession() {
  Injection* self = BeginSession(true);
  uint32_t heartbeat = 0;
  const bool may_be_alone = self == nullptr && ReadHeartbeat(&heartbeat);
  const uint64_t deadline_ns = MonotonicNs() + kSilenceNs;
  while (self == nullptr && MonotonicNs() < deadline_ns) {
    SleepNs(kLongestLookNs);
    self = BeginSession(true);
  }
  if (self != nullptr || !may_be_alone || !CloseSilentRing(heartbeat)) return self;
  if (EndSessionWithoutFlusher()) return BeginSession(true);
  const uint64_t end_ns = MonotonicNs() + kEndPatienceNs;
  while (self == nullptr && MonotonicNs() < end_ns) {
    SleepNs(kLongestLookNs);
    self = BeginSession(true);
  }
  return self;
}

void UseRing(Injection& self, uint64_t session) {
  self.session = session;
  self.ring.Attach(self.mapped.header, self.mapped.capacity_bytes);
  self.mapped.header->attached.store(1, std::memory_order_release);
  self.settings = self.mapped.header->settings;
  self.gate.Open(self.mapped.header, &self.ring, self.attached);
  HandleForks();
}

void EndSession(Injection& self) {
  Deactivate(self);
  g_process.nvtx.active.store(false, std::memory_order_release);
  if (g_process.exits.load()) return;
  if (self.leaving.load() == Leaving::kDone) g_process.has_cupti.store(false);
  LeaveTorchAllocator();
  WaitUntilNobodyIsInside();
  self.stacks.Close();
  self.drain.Close();
  self.sampling.Close();
  self.intervals.Close();
  self.instantiated.Close();
  self.pool.Close(self.leaving.load() == Leaving::kDone);
  self.gate.Close();
  Unmap(self.mapped);
  self.mapped = {};
  g_process.has_session.store(false, std::memory_order_release);
}

void GiveUpSession() { g_process.has_session.store(false, std::memory_order_release); }

void HandleForks() {
  if (g_process.has_fork_handler) return;
  pthread_atfork([] { KeepFromLoadedFiles(); }, &ReturnToLoadedFiles, &OnForkedChild);
  g_process.has_fork_handler = true;
}

}  // namespace xpu::inject
