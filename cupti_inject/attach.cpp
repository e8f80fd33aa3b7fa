// A session in a program that ran already: from the request that the recorder wrote into it to the
// end, all on the thread that the recorder started.
#include <csignal>
#include <cstdio>
#include <cstring>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cupti_inject/attach_request.h"
#include "cupti_inject/cupti_loader.h"
#include "cupti_inject/devices.h"
#include "cupti_inject/flusher.h"
#include "cupti_inject/nvtx_copies.h"
#include "cupti_inject/session.h"
#include "cupti_inject/setup.h"
#include "cupti_inject/torch_allocator.h"

namespace xpu::inject {
namespace {

constexpr uint64_t kStateStepNs = 500'000;
// Nobody is held up meanwhile: the program goes on.
constexpr uint64_t kHandshakePatienceNs = 5'000'000'000;
constexpr uint64_t kTablesWaitNs = 2'000'000'000;
constexpr uint64_t kPythonWaitNs = 2'000'000'000;
constexpr uint64_t kReplaysReturnNs = 50'000'000;

// The recorder's memory in the program, until the library has what it needs of it.
class Area {
 public:
  explicit Area(wire::AttachRequest* request)
      : request_(*request), start_(request->area_start), bytes_(request->area_bytes) {}
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;
  ~Area() {
    // The request alone.
    const uint64_t kept = may_be_written_ ? wire::kPageBytes : 0;
    if (bytes_ > kept) munmap(reinterpret_cast<void*>(start_ + kept), bytes_ - kept);
  }

  bool Move(wire::AttachState from, wire::AttachState to) {
    return request_.state.compare_exchange_strong(from, to);
  }
  // `offer`: the state in which the recorder finds the request. False: it has withdrawn, or says
  // nothing.
  bool WaitUntilTaken(wire::AttachState offer) {
    const uint64_t deadline_ns = MonotonicNs() + wire::kAttachPatienceNs;
    wire::AttachState state = offer;
    while (state == offer && MonotonicNs() < deadline_ns) {
      SleepNs(kStateStepNs);
      state = request_.state.load();
    }
    // One that stood still all that time says so when it goes on.
    may_be_written_ = state == offer &&
                      request_.state.compare_exchange_strong(state, wire::AttachState::kWithdrawn);
    return state == wire::AttachState::kTaken;
  }
  void Refuse(const char* why) {
    std::snprintf(request_.error, sizeof(request_.error), "%s", why);
    constexpr wire::AttachState kOffer = wire::AttachState::kRefused;
    if (Move(wire::AttachState::kLoading, kOffer)) WaitUntilTaken(kOffer);
  }
  // The library's end of a connection whose other end the recorder has; -1: it has not.
  int Offer() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
      char why[128];
      std::snprintf(why, sizeof(why), "no connection can be made in the program: %s",
                    strerrordesc_np(errno));
      Refuse(why);
      return -1;
    }
    g_process.peer_plus_1.store(ends[0] + 1);
    g_process.offered_plus_1.store(ends[1] + 1);
    request_.socket.store(ends[1]);
    constexpr wire::AttachState kOffer = wire::AttachState::kOffered;
    const bool taken = Move(wire::AttachState::kLoading, kOffer) && WaitUntilTaken(kOffer);
    g_process.offered_plus_1.store(0);
    close(ends[1]);
    if (taken) return ends[0];
    g_process.peer_plus_1.store(0);
    close(ends[0]);
    return -1;
  }

 private:
  wire::AttachRequest& request_;
  uint64_t start_;
  uint64_t bytes_;
  bool may_be_written_ = false;  // by the recorder, at any time
};

void StayDormant(Injection& self, const char* reason) {
  Deactivate(self);
  SendDetail(self, wire::DetailKind::kDormantReason, 0, reason);
  self.ring.SetState(wire::State::kDormant);
  self.finished.store(true, std::memory_order_release);
  self.flusher_done.Notify();
}

void OpenStacks(Injection& self, const WakeDescriptor& peer) {
  if ((self.settings & wire::kSettingInlineStacks) == 0) return;
  if (self.mapped.arena == nullptr) {
    SendDetail(self, wire::DetailKind::kNote, 0,
               "no launch stacks: no address space or descriptor for the unwind tables");
  } else if (!self.stacks.Open(self.mapped, &self.ring, &self.flusher_wake)) {
    SendDetail(self, wire::DetailKind::kNote, 0, "no launch stacks: no memory for them");
  }
  self.stacks.Refresh();
  peer.Ring();
  self.stacks.WaitForTables(peer, kTablesWaitNs);
  self.stacks.WaitForPython(peer, kPythonWaitNs);
}

void NoteNvtx(Injection& self) {
  const unsigned libraries = CountNvtxLibraries();
  if (libraries == 0) return;
  char text[160];
  std::snprintf(text, sizeof(text),
                "NVTX ranges are not recorded after an attach; libraries with NVTX: %u", libraries);
  SendDetail(self, wire::DetailKind::kNote, 0, text);
}

void OpenIntervals(Injection& self) {
  if (!self.intervals.Open(&self.ring, &self.drain, &self.cupti)) {
    return SendDetail(self, wire::DetailKind::kNote, 0,
                      "replays of graphs are recorded by nodes: no memory to time them by events, "
                      "or no functions for that in this CUDA driver");
  }
  self.gate.Shut();
}

// Launches of graphs that were under way when their callbacks were switched on have returned by
// then: their nodes are not to be recorded.
void StartIntervals(Injection& self) {
  SleepNs(kReplaysReturnNs);
  self.intervals.Start();
  self.gate.Unshut();
}

// Where it is true, an exit waits until CUPTI has been set up. An exit that was in a handler of
// CUPTI's comes to ours next, once that one has returned; the driver says itself that it is being
// taken down.
bool MayGoOnNow(SetUpStep step) {
  constexpr uint64_t kHandlerNs = 1'000'000;
  const bool is_registered = HandleExit(step);
  SleepNs(kHandlerNs);
  return is_registered && !g_process.exits.load() && !IsDriverGone();
}

void RecordAttached(Injection& self, const WakeDescriptor& peer, const char* cupti_library) {
  // GRAPH_TRACE, enabled late, crashes libcupti at the next replay of an older graph. A copy of
  // NVTX that found no tool at its first call never asks again.
  const bool wants_intervals = (self.settings & wire::kSettingGraphNodes) == 0;
  self.settings |= wire::kSettingGraphNodes;
  self.settings &= ~wire::kSettingNvtx;
  OpenStacks(self, peer);
  self.has_flusher = true;  // this thread
  // It was created before anybody could tell us. Without one, CUPTI has no clock yet.
  self.context_exists.store(true, std::memory_order_release);
  // Before CUPTI can call back, and before anything calls the driver.
  Activate(self);
  if (!MayGoOnNow(SetUpStep::kBegins)) return StayDormant(self, kExitedMeanwhile);
  char reason[1024] = "";
  if (wants_intervals) OpenIntervals(self);
  if (!SetUpCupti(self, cupti_library, &MayGoOnNow, reason, sizeof(reason))) {
    return StayDormant(self, reason);
  }
  if (self.intervals.is_open()) StartIntervals(self);
  SendDevices(self);
  NoteNvtx(self);
  self.stacks.Refresh();  // with CUPTI's code
  FollowTorchAllocator(self);
  self.ring.SetState(wire::State::kActive);
  peer.Ring();
  RunAttached(self, peer);
}

void RunSession(Injection& self, int connection, uint64_t session, const char* cupti_library) {
  WakeDescriptor peer;
  peer.Hold(connection);
  if (!ShakeHands(connection, self.instance, kHandshakePatienceNs, &self.mapped)) {
    GiveUpSession();
  } else {
    UseRing(self, session);
    RecordAttached(self, peer, cupti_library);
    EndSession(self);
  }
  // In another session's time it may be that one's.
  int own = connection + 1;
  g_process.peer_plus_1.compare_exchange_strong(own, 0);
}

void Attach(wire::AttachRequest* request) {
  int connection = -1;
  Injection* self = nullptr;
  const uint64_t session = request->session;
  char cupti_library[wire::kAttachPathBytes];
  if (request->version != wire::kAttachVersion) {
    // Where it has the other members nobody knows.
    wire::AttachState loading = wire::AttachState::kLoading;
    request->state.compare_exchange_strong(loading, wire::AttachState::kRefused);
    return;
  }
  {
    Area area(request);
    std::memcpy(cupti_library, request->cupti_library, sizeof(cupti_library));
    cupti_library[sizeof(cupti_library) - 1] = '\0';
    if (g_process.has_cupti_of_parent.load()) return area.Refuse(wire::kAttachIsForked);
    self = BeginAttachedSession();
    if (self == nullptr) {
      const bool waits = g_process.first_call_ns.load() != 0;
      return area.Refuse(waits ? wire::kAttachWaits : wire::kAttachIsTaken);
    }
    HandleForks();
    HandleExit(SetUpStep::kBegins);
    connection = area.Offer();
  }
  if (connection < 0) return GiveUpSession();
  RunSession(*self, connection, session, cupti_library[0] == '\0' ? nullptr : cupti_library);
}

}  // namespace
}  // namespace xpu::inject

extern "C" __attribute__((visibility("default"))) void* xpu_inject_attach(void* request) {
  // Nobody joins this thread, and no signal of the program may be handled on it.
  pthread_detach(pthread_self());
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "xpu-inject");
  xpu::inject::Attach(static_cast<xpu::wire::AttachRequest*>(request));
  return nullptr;
}
