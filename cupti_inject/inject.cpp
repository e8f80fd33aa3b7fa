// What the CUDA driver loads and calls.
#include <cstdlib>

#include <pthread.h>
#include <sys/random.h>

#include "cupti_inject/injection.h"

namespace xpu::inject {

constinit Injection g_injection;

namespace {

// Tables that the recorder has at hand come in a few milliseconds; a program without them sends
// whole stacks. Creating the first context takes a real device 100 ms.
constexpr uint64_t kTablesPatienceNs = 30'000'000;
// Only a recorder that is starved needs more than a few ms of it.
constexpr uint64_t kPythonPatienceNs = 2'000'000'000;
// Large libraries that are recorded for the first time take some of it, once.
constexpr uint64_t kMarkerPatienceNs = 2'000'000'000;

uint64_t RandomNumber() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number) || number == 0) {
    // Before the machine's entropy is there: unique enough among the processes of one recording.
    number = MonotonicNs() << 20 ^ static_cast<uint64_t>(getpid()) ^ 0x9e3779b97f4a7c15;
  }
  return number;
}

// The child shares our ring but has neither our thread nor CUDA: it must not write.
void OnForkedChild() {
  g_injection.active.store(false, std::memory_order_relaxed);
  g_injection.nvtx.active.store(false, std::memory_order_relaxed);
}

void OnExit() {
  if (g_injection.active.load(std::memory_order_acquire)) StopFlusher();
}

void GoDormant(const char* reason) {
  Injection& self = g_injection;
  SendDetail(wire::DetailKind::kDormantReason, 0, reason);
  self.ring.SetState(wire::State::kDormant);
  if (self.subscriber != nullptr) return;  // CUPTI may be calling us on another thread
  self.drain.Close();
  self.stacks.Close();
  if ((self.settings & wire::kSettingNvtx) == 0) Unmap(self.mapped);
}

void OpenStacks() {
  Injection& self = g_injection;
  const MappedRing& ring = self.mapped;
  if ((self.settings & wire::kSettingInlineStacks) == 0) return;
  if (ring.arena == nullptr) {
    SendDetail(wire::DetailKind::kMarkerUsed, 0,
               "no address space or descriptor for the unwind tables");
  } else if (!self.stacks.Open(ring, &self.ring, &self.flusher_wake)) {
    SendDetail(wire::DetailKind::kMarkerUsed, 0, "no memory for stacks");
  }
  self.stacks.Refresh();  // early: the recorder makes the tables meanwhile
}

bool ConnectToRecorder(Bell* bell) {
  Injection& self = g_injection;
  // As root set-uid programs must not load what the environment says, secure_getenv.
  Invitation invitation;
  if (!ParseInvitation(secure_getenv(wire::kEnvironmentVariable), &invitation)) return false;
  self.instance = RandomNumber();
  self.session = invitation.session;
  if (!Connect(invitation, self.instance, kConnectTimeoutNs, &self.mapped, bell)) return false;
  self.ring.Attach(self.mapped.header, self.mapped.capacity_bytes);
  self.mapped.header->attached.store(1, std::memory_order_release);
  self.settings = self.mapped.header->settings;
  self.gate.Open(self.mapped.header, &self.ring);
  pthread_atfork(nullptr, nullptr, &OnForkedChild);
  if ((self.settings & wire::kSettingNvtx) != 0) {
    self.nvtx.active.store(true, std::memory_order_release);
  }
  return true;
}

// What BPF programs cannot walk at the launch nobody can later.
void WaitForMarkerTables(const Bell& bell) {
  wire::RingHeader& header = *g_injection.mapped.header;
  header.tables_awaited.store(1, std::memory_order_release);
  bell.Ring();
  bell.WaitUntil(kMarkerPatienceNs,
                 [&] { return header.tables_there.load(std::memory_order_acquire) != 0; });
}

void Start() {
  Injection& self = g_injection;
  Bell bell;
  if (!ConnectOnce(&bell)) return;
  OpenStacks();
  bell.Ring();

  const char* chosen = secure_getenv(wire::kCuptiLibVariable);
  if (chosen != nullptr && chosen[0] == '\0') chosen = nullptr;
  char reason[1024] = "";
  // Before CUPTI can call back.
  self.active.store(true, std::memory_order_release);
  if (!SetUpCupti(chosen, reason, sizeof(reason))) {
    self.active.store(false, std::memory_order_release);
    GoDormant(reason);
    return;
  }
  self.stacks.Refresh();  // with CUPTI's code
  bell.Ring();
  self.stacks.WaitForTables(bell, kTablesPatienceNs);
  self.stacks.WaitForPython(bell, kPythonPatienceNs);
  if (!self.stacks.on()) WaitForMarkerTables(bell);
  std::atexit(&OnExit);  // after CUPTI's own, so that ours runs before them
  self.has_flusher = StartFlusher();
  if (!self.has_flusher) {
    self.stacks.StopFollowing();
    SendDetail(wire::DetailKind::kNote, 0,
               "no thread could be started: activity comes when buffers are full and at the end");
  }
  self.ring.SetState(wire::State::kActive);
}

}  // namespace

bool ConnectOnce(Bell* bell) {
  std::atomic<Connection>& connection = g_injection.connection;
  Connection before = Connection::kNone;
  if (connection.compare_exchange_strong(before, Connection::kBeingMade)) {
    const bool connected = ConnectToRecorder(bell);
    connection.store(connected ? Connection::kThere : Connection::kRefused);
    return connected;
  }
  // A child that was forked meanwhile waits for nobody.
  const uint64_t deadline_ns = MonotonicNs() + kConnectTimeoutNs;
  while (connection.load() == Connection::kBeingMade && MonotonicNs() < deadline_ns) {
    SleepNs(1'000'000);
  }
  return connection.load() == Connection::kThere;
}

}  // namespace xpu::inject

// 1 is success: anything else would make the driver's initialisation fail.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (!xpu::inject::g_injection.started.exchange(true)) xpu::inject::Start();
  return 1;
}
