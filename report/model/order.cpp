#include "report/model/order.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace xpu {
namespace {

template <typename Event, typename Allocator>
void Order(std::vector<Event, Allocator>& events, uint64_t Event::*time) {
  const auto earlier = [time](const Event& a, const Event& b) { return a.*time < b.*time; };
  if (std::is_sorted(events.begin(), events.end(), earlier)) return;
  std::stable_sort(events.begin(), events.end(), earlier);
}

}  // namespace

void OrderByTime(LoadedEvents& events) {
  Order(events.process_events, &ProcessEvent::time_ns);
  Order(events.mappings, &Mapping::time_ns);
  Order(events.cpu_samples, &CpuSample::time_ns);
  Order(events.gpu_processes, &GpuProcess::time_ns);
  Order(events.clock_pairs, &ClockPair::before_ns);
  events.api_calls.SortBy<&ApiCall::start_ns>();
  events.launch_stacks.SortBy<&LaunchStack::time_ns>();
  Order(events.graph_nodes, &GraphNode::time_ns);
  Order(events.probe_hits, &ProbeHit::time_ns);
  Order(events.generated_symbols, &GeneratedSymbol::time_ns);
  Order(events.nvtx_events, &NvtxEvent::time_ns);
  Order(events.memory_operations, &MemoryOperation::time_ns);
  Order(events.recording_switches, &RecordingSwitch::time_ns);
  Order(events.jit_operations, &JitOperation::start_ns);
}

}  // namespace xpu
