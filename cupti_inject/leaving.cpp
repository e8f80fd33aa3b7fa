#include "cupti_inject/leaving.h"

#include "cupti_inject/cupti_versions.h"
#include "cupti_inject/setup.h"

namespace xpu::inject {
namespace {

// A program that makes calls makes one in this time.
constexpr uint64_t kCallPatienceNs = 200'000'000;
// Without a call, while a kernel runs: the program most likely waits for it in a call.
constexpr uint64_t kBusyPatienceNs = 3'000'000'000;
// For the one thread that replays graphs: kinds are on meanwhile, and another session may be near.
constexpr uint64_t kGraphPatienceNs = 500'000'000;

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

bool MayEverFinalize(const Injection& self, uint32_t graph_thread) {
  // A program that has graphs looks like any other when a session begins.
  return self.cupti.finalize != nullptr && !g_process.keeps_cupti.load() &&
         (graph_thread == 0 || (graph_thread != kSeveralThreads && IsAlive(graph_thread))) &&
         cupti::CudaVersionOfCupti(self.cupti_version) >= cupti::kFirstToFinalizeWithGraphs;
}

bool MayFinalize(const Injection& self) {
  // Of replays while the kinds were being switched on.
  const bool has_stray_nodes = self.drain.has_nodes() && !self.keeps_kinds_on;
  return !has_stray_nodes && MayEverFinalize(self, g_process.graph_thread.load());
}

void KeepCupti(const Injection& self) {
  if (g_process.graph_thread.load() != 0 || self.drain.has_nodes()) {
    g_process.keeps_cupti.store(true);
  }
  TearDownCupti(self);
}

}  // namespace

bool KeepsKindsOn(const Injection& self) {
  const uint32_t graph_thread = g_process.graph_thread.load();
  return graph_thread != 0 && !self.intervals.is_open() && MayEverFinalize(self, graph_thread);
}

void LeaveCupti(Injection& self, bool is_idle) {
  if (!MayFinalize(self)) return KeepCupti(self);
  self.leaving.store(Leaving::kWanted);
  self.mark.store(0);
  const bool has_graphs = g_process.graph_thread.load() != 0;
  Leaving leaving = WaitForEndOfCall(self, has_graphs ? kGraphPatienceNs : kCallPatienceNs);
  if (leaving == Leaving::kWanted && !is_idle && !has_graphs)
    leaving = WaitForEndOfCall(self, kBusyPatienceNs);
  if (leaving == Leaving::kWanted &&
      !self.leaving.compare_exchange_strong(leaving, Leaving::kBegun)) {
    leaving = WaitForEndOfCall(self, kForever / 2);
  }
  if (leaving == Leaving::kDone) return;
  KeepCupti(self);
  // At exit it finalizes itself. While the device works it stays initialized, which costs the
  // program a little and endangers nothing.
  if (g_process.keeps_cupti.load() || !is_idle || leaving == Leaving::kFailed || self.stop.load())
    return;
  if (self.cupti.finalize() == cupti::kSuccess) self.leaving.store(Leaving::kDone);
}

}  // namespace xpu::inject
