// The events of a capture as reports keep them: the lists of EventBatch, the long ones compact.
#pragma once

#include <vector>

#include "format/events.h"
#include "report/model/compact_list.h"
#include "report/model/huge_pages.h"

namespace xpu {

using ApiCallList =
    CompactList<ApiCall, &ApiCall::start_ns, &ApiCall::end_ns, &ApiCall::correlation_id>;
using LaunchStackList =
    CompactList<LaunchStack, &LaunchStack::time_ns, &LaunchStack::correlation_id,
                &LaunchStack::stack, &LaunchStack::python_stack>;
using KernelList = CompactList<Kernel, &Kernel::start_ns, &Kernel::end_ns, &Kernel::completed_ns,
                               &Kernel::grid_id, &Kernel::correlation_id>;
using MemcpyList = CompactList<Memcpy, &Memcpy::start_ns, &Memcpy::end_ns, &Memcpy::size_bytes,
                               &Memcpy::correlation_id>;
using MemsetList = CompactList<Memset, &Memset::start_ns, &Memset::end_ns, &Memset::size_bytes,
                               &Memset::correlation_id>;
using SynchronizationList =
    CompactList<Synchronization, &Synchronization::start_ns, &Synchronization::end_ns,
                &Synchronization::event_sync_id, &Synchronization::correlation_id>;
using GraphLaunchList = CompactList<GraphLaunch, &GraphLaunch::start_ns, &GraphLaunch::end_ns,
                                    &GraphLaunch::correlation_id>;

using SampleList = std::vector<CpuSample, HugePageAllocator<CpuSample>>;

struct LoadedEvents {
  std::vector<RecordingInfo> recording_info;
  std::vector<RecordingEnd> recording_end;
  std::vector<SampleSource> sample_sources;
  std::vector<Loss> losses;
  std::vector<ProcessEvent> process_events;
  std::vector<Mapping> mappings;
  std::vector<KernelSymbol> kernel_symbols;
  SampleList cpu_samples;
  std::vector<GpuProcess> gpu_processes;
  std::vector<ClockPair> clock_pairs;
  std::vector<CallbackName> callback_names;
  ApiCallList api_calls;
  LaunchStackList launch_stacks;
  KernelList kernels;
  MemcpyList memcpys;
  MemsetList memsets;
  SynchronizationList synchronizations;
  GraphLaunchList graph_launches;
  std::vector<Overhead> overheads;
  std::vector<Device> devices;
  std::vector<RawActivity> raw_activities;
  std::vector<GraphNode> graph_nodes;
  std::vector<Probe> probes;
  std::vector<ProbeHit> probe_hits;
  std::vector<SymbolSlice> symbol_slices;
  std::vector<GeneratedSymbol> generated_symbols;
  std::vector<NvtxEvent> nvtx_events;
  std::vector<MemoryOperation> memory_operations;
  std::vector<RecordingSwitch> recording_switches;
  std::vector<PythonCode> python_codes;
  std::vector<JitOperation> jit_operations;
};

// Calls visit(list, list of `more`) for each kind of event; `more` is an EventBatch or another of
// these.
template <typename More, typename Visit>
void VisitBoth(LoadedEvents& events, More& more, Visit&& visit) {
  visit(events.recording_info, more.recording_info);
  visit(events.recording_end, more.recording_end);
  visit(events.sample_sources, more.sample_sources);
  visit(events.losses, more.losses);
  visit(events.process_events, more.process_events);
  visit(events.mappings, more.mappings);
  visit(events.kernel_symbols, more.kernel_symbols);
  visit(events.cpu_samples, more.cpu_samples);
  visit(events.gpu_processes, more.gpu_processes);
  visit(events.clock_pairs, more.clock_pairs);
  visit(events.callback_names, more.callback_names);
  visit(events.api_calls, more.api_calls);
  visit(events.launch_stacks, more.launch_stacks);
  visit(events.kernels, more.kernels);
  visit(events.memcpys, more.memcpys);
  visit(events.memsets, more.memsets);
  visit(events.synchronizations, more.synchronizations);
  visit(events.graph_launches, more.graph_launches);
  visit(events.overheads, more.overheads);
  visit(events.devices, more.devices);
  visit(events.raw_activities, more.raw_activities);
  visit(events.graph_nodes, more.graph_nodes);
  visit(events.probes, more.probes);
  visit(events.probe_hits, more.probe_hits);
  visit(events.symbol_slices, more.symbol_slices);
  visit(events.generated_symbols, more.generated_symbols);
  visit(events.nvtx_events, more.nvtx_events);
  visit(events.memory_operations, more.memory_operations);
  visit(events.recording_switches, more.recording_switches);
  visit(events.python_codes, more.python_codes);
  visit(events.jit_operations, more.jit_operations);
}

}  // namespace xpu
