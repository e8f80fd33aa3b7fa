#include "cupti_inject/leaving.h"

#include "cupti_inject/cupti_versions.h"
#include "cupti_inject/setup.h"

namespace xpu::inject {
namespace {

// A program that makes calls makes one in this time.
constexpr uint64_t kCallPatienceNs = 200'000'000;
// Without a call, while a kernel runs: the program most likely waits for it in a call.
constexpr uint64_t kBusyPatienceNs = 3'000'000'000;

// Until a callback has done it or tried; in vain: after this time, or when the program exits.
Leaving WaitForEndOfCall(Injection& self, uint64_t patience_ns) {
  const uint64_t deadline_ns = MonotonicNs() + patience_ns;
  while (true) {
    const uint32_t ticket = self.left.Ticket();
    const Leaving leaving = self.leaving.load();
    const uint64_t now_ns = MonotonicNs();
    const bool in_vain = self.stop.load() || now_ns >= deadline_ns;
    // A callback that has begun does not stop half-way.
    if (leaving != Leaving::kBegun && (leaving != Leaving::kWanted || in_vain)) return leaving;
    constexpr uint64_t kLookNs = 50'000'000;
    self.left.Wait(ticket, now_ns >= deadline_ns ? kLookNs : deadline_ns - now_ns);
  }
}

}  // namespace

void LeaveCupti(Injection& self, bool is_idle) {
  // A program that has graphs looks like any other when a session begins.
  const bool may_crash =
      cupti::CudaVersionOfCupti(self.cupti_version) < cupti::kFirstToFinalizeWithGraphs;
  if (self.cupti.finalize == nullptr || g_process.has_recorded_nodes.load() || may_crash) {
    TearDownCupti(self);
    return;
  }
  self.leaving.store(Leaving::kWanted);
  self.mark.store(0);
  Leaving leaving = WaitForEndOfCall(self, kCallPatienceNs);
  if (leaving == Leaving::kWanted && !is_idle) leaving = WaitForEndOfCall(self, kBusyPatienceNs);
  if (leaving == Leaving::kWanted &&
      !self.leaving.compare_exchange_strong(leaving, Leaving::kBegun)) {
    leaving = WaitForEndOfCall(self, kForever / 2);
  }
  if (leaving == Leaving::kDone) return;
  TearDownCupti(self);
  // At exit it finalizes itself. While the device works it stays initialized, which costs the
  // program a little and endangers nothing.
  if (!is_idle || leaving == Leaving::kFailed || self.stop.load()) return;
  if (self.cupti.finalize() == cupti::kSuccess) self.leaving.store(Leaving::kDone);
}

}  // namespace xpu::inject
