// What the CUDA driver loads and calls.
#include <cstdlib>

#include "cupti_inject/connection.h"
#include "cupti_inject/flusher.h"
#include "cupti_inject/injection.h"
#include "cupti_inject/session.h"
#include "cupti_inject/setup.h"
#include "cupti_inject/torch_allocator.h"

namespace xpu::inject {
namespace {

// Tables that the recorder has at hand come in a few milliseconds; a program without them sends
// whole stacks. Creating the first context takes a real device 100 ms.
constexpr uint64_t kTablesPatienceNs = 30'000'000;
// Only a recorder that is starved needs more than a few ms of it.
constexpr uint64_t kPythonPatienceNs = 2'000'000'000;
// Large libraries that are recorded for the first time take some of it, once.
constexpr uint64_t kMarkerPatienceNs = 2'000'000'000;

void GoDormant(Injection& self, const char* reason) {
  SendDetail(self, wire::DetailKind::kDormantReason, 0, reason);
  self.ring.SetState(wire::State::kDormant);
  if (self.subscriber != nullptr) return;  // CUPTI may be calling us on another thread
  if ((self.settings & wire::kSettingNvtx) == 0) return EndSession(self);
  g_process.is_dormant.store(true);
}

void OpenStacks(Injection& self) {
  const MappedRing& ring = self.mapped;
  if ((self.settings & wire::kSettingInlineStacks) == 0) return;
  if (ring.arena == nullptr) {
    SendDetail(self, wire::DetailKind::kMarkerUsed, 0,
               "no address space or descriptor for the unwind tables");
  } else if (!self.stacks.Open(ring, &self.ring, &self.flusher_wake)) {
    SendDetail(self, wire::DetailKind::kMarkerUsed, 0, "no memory for stacks");
  }
  self.stacks.Refresh();  // early: the recorder makes the tables meanwhile
}

// What BPF programs cannot walk at the launch nobody can later.
void WaitForMarkerTables(const Injection& self, const WakeDescriptor& wake) {
  wire::RingHeader& header = *self.mapped.header;
  header.tables_awaited.store(1, std::memory_order_release);
  wake.Ring();
  wake.WaitUntil(kMarkerPatienceNs,
                 [&] { return header.tables_there.load(std::memory_order_acquire) != 0; });
}

void Start() {
  WakeDescriptor wake;
  Injection* connected = ConnectOnce(&wake);
  if (connected == nullptr) return;
  Injection& self = *connected;
  OpenStacks(self);
  wake.Ring();

  const char* chosen = secure_getenv(wire::kCuptiLibVariable);
  if (chosen != nullptr && chosen[0] == '\0') chosen = nullptr;
  char reason[1024] = "";
  // Before CUPTI can call back.
  Activate(self);
  // The program waits for us here.
  constexpr MayGoOn kAlways = [](SetUpStep) { return true; };
  if (!SetUpCupti(self, chosen, kAlways, reason, sizeof(reason))) {
    Deactivate(self);
    GoDormant(self, reason);
    return;
  }
  self.stacks.Refresh();  // with CUPTI's code
  FollowTorchAllocator(self);
  wake.Ring();
  self.stacks.WaitForTables(wake, kTablesPatienceNs);
  self.stacks.WaitForPython(wake, kPythonPatienceNs);
  if (!self.stacks.on()) WaitForMarkerTables(self, wake);
  HandleExit(SetUpStep::kSubscribed);
  // Before there is a flusher: it may be through with everything at once.
  self.ring.SetState(wire::State::kActive);
  self.has_flusher = true;
  if (!StartFlusher(self)) {
    self.has_flusher = false;
    self.stacks.StopFollowing();
    SendDetail(self, wire::DetailKind::kNote, 0,
               "no thread could be started: activity comes when buffers are full and at the end");
  }
}

}  // namespace

}  // namespace xpu::inject

// 1 is success: anything else would make the driver's initialization fail.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (!xpu::inject::g_process.started.exchange(true)) xpu::inject::Start();
  return 1;
}
