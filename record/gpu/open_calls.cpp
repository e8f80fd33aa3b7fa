#include "record/gpu/open_calls.h"

#include <algorithm>

namespace xpu {
namespace {

constexpr size_t kMaxWorking = 4096;

// Calls for which CUPTI must deliver a record. Host functions run on the CPU, and calls that build
// graphs only describe work.
bool MakesGpuWork(std::string_view call) {
  if (call.find("GraphLaunch") != std::string_view::npos) return true;
  if (call.find("Graph") != std::string_view::npos) return false;
  for (std::string_view word :
       {"LaunchKernel", "LaunchCooperative", "Memcpy", "Memset", "LaunchGrid"}) {
    if (call.find(word) != std::string_view::npos) return true;
  }
  return call == "cuLaunch" || call == "cudaLaunch";
}

}  // namespace

void OpenCalls::SetName(uint32_t domain, uint32_t id, std::string_view name) {
  if (working_.size() < kMaxWorking && MakesGpuWork(name)) working_.insert(KeyOf(domain, id));
}

void OpenCalls::Add(const Call& call) {
  // A call that added graph nodes was captured from its stream: the GPU does not run it now.
  if (call.return_value != 0 || call.graph_nodes > 0) return;
  if (!working_.contains(KeyOf(call.domain, call.callback_id))) return;
  const auto [entry, is_new] = open_.try_emplace(call.correlation_id);
  // A process whose records never arrive must not exhaust the recorder's memory.
  if (is_new && !memory_.Take(kCallBytes)) {
    open_.erase(entry);
    return;
  }
  entry->second = call.start_ns;
}

uint64_t OpenCalls::OldestStartNs() const {
  uint64_t oldest = 0;
  for (const auto& [id, start_ns] : open_) {
    oldest = oldest == 0 ? start_ns : std::min(oldest, start_ns);
  }
  return oldest;
}

}  // namespace xpu
