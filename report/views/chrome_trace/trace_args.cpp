#include "report/views/chrome_trace/trace_args.h"

#include <algorithm>
#include <limits>

#include "format/base/text.h"
#include "report/query/gpu_memory.h"
#include "report/trace/correlation.h"

namespace xpu {
namespace {

void WriteArgs(const Kernel& kernel, TraceWriter& writer) {
  writer.Arg("grid", {kernel.grid_x, kernel.grid_y, kernel.grid_z});
  writer.Arg("block", {kernel.block_x, kernel.block_y, kernel.block_z});
  if (kernel.cluster_x != 0) {
    writer.ArgText("cluster",
                   Format("{} x {} x {}", kernel.cluster_x, kernel.cluster_y, kernel.cluster_z));
  }
  writer.Arg("registers per thread", kernel.registers_per_thread);
  writer.Arg("static shared memory", kernel.static_shared_memory_bytes);
  writer.Arg("dynamic shared memory", kernel.dynamic_shared_memory_bytes);
  writer.Arg("local memory per thread", kernel.local_memory_per_thread_bytes);
}

// Bytes per nanosecond are GB/s.
void WriteBytes(uint64_t bytes, uint64_t duration_ns, TraceWriter& writer) {
  writer.Arg("bytes", bytes);
  if (duration_ns == 0 || bytes > std::numeric_limits<uint64_t>::max() / 1000) return;
  writer.ArgThousandths("memory bandwidth (GB/s)", bytes * 1000 / duration_ns);
}

void WriteArgs(const Memcpy& copy, TraceWriter& writer) {
  writer.ArgText("source", MemoryKindText(copy.source_kind));
  writer.ArgText("destination", MemoryKindText(copy.destination_kind));
}

void WriteArgs(const Memset& set, TraceWriter& writer) { writer.Arg("value", set.value); }

void WriteArgs(const GraphLaunch& graph, TraceWriter& writer) {
  writer.Arg("graph", graph.graph_id);
}

void WriteArgs(const Synchronization& wait, TraceWriter& writer) {
  if (wait.event_id != kNoSynchronizedObject) writer.Arg("event", wait.event_id);
}

// From the call to the start of its work: when it began, and how much of that the work waited
// after the call had returned. Not of a graph's node, which waits for the nodes before it.
void WriteLatency(const Analysis& analysis, const GpuWork& work, TraceWriter& writer) {
  if (work.launch == GpuWork::kNoLaunch) {
    writer.ArgText("launch", "[unknown launch]");
    return;
  }
  // Almost all are matched by id: only the others say how.
  if (work.match != MatchKind::kById) writer.ArgText("matched", MatchText(work.match));
  const Launch& launch = analysis.correlation.launches[work.launch];
  const bool is_node = work.origin != NodeOrigin::kNoNode;
  if (work.kind == WorkKind::kSynchronization || is_node || !launch.has_call) return;
  if (work.start_ns < launch.start_ns) return;  // the clocks are off by as much
  writer.ArgThousandths("launch latency (us)", work.start_ns - launch.start_ns);
  writer.ArgThousandths("queue time (us)", work.start_ns - std::min(work.start_ns, launch.end_ns));
}

template <typename Record>
void WriteAllArgs(const Analysis& analysis, const Record& record, const GpuWork& work,
                  TraceWriter& writer) {
  if constexpr (requires { record.size_bytes; }) {
    WriteBytes(record.size_bytes, work.duration_ns, writer);
  }
  WriteArgs(record, writer);
  WriteLatency(analysis, work, writer);
  writer.Arg("device", analysis.gpus.Of(work.instance, work.device_id).number);
  writer.Arg("context", record.context_id);
  if (record.stream_id != kNoSynchronizedObject) writer.Arg("stream", record.stream_id);
  writer.Arg("correlation", record.correlation_id);
  if constexpr (requires { record.graph_node_id; }) {
    if (record.graph_node_id == 0) return;
    writer.Arg("graph", GraphIdOf(record.graph_id, record.graph_node_id));
    writer.Arg("graph node", record.graph_node_id);
  }
}

}  // namespace

void WriteRangeArgs(const Analysis& analysis, const NvtxRange& range, TraceWriter& writer) {
  const NvtxEvent& event = *range.event;
  writer.ArgText("style", StyleText(range.style));
  if (range.is_open) writer.ArgText("end", "not in the capture");
  if (event.category != 0) writer.ArgText("category", analysis.nvtx.CategoryOf(event));
  if (event.color != 0) writer.ArgText("color", Format("#{:08x}", event.color));
  const std::string payload = PayloadText(event);
  if (!payload.empty()) writer.ArgText("payload", payload);
}

void WriteCallArgs(const Launch& launch, TraceWriter& writer) {
  if (launch.probe != 0) {
    writer.ArgText("matched", MatchText(launch.stack_match));
  } else {
    writer.Arg("correlation", launch.correlation_id);
    const bool is_by_id = launch.stack_match == MatchKind::kById;
    if (launch.has_stack && !is_by_id)
      writer.ArgText("stack matched", MatchText(launch.stack_match));
  }
  if (launch.return_value != 0) writer.Arg("error", launch.return_value);
  const LaunchStatus status = LaunchStatusOf(launch);
  if (status == LaunchStatus::kCaptured) writer.Arg("captured graph nodes", launch.graph_nodes);
  if (status == LaunchStatus::kUnmatched) writer.ArgText("work", "[no GPU record]");
}

void WriteOverheadArgs(const Analysis& analysis, const DriverTime& overhead, TraceWriter& writer) {
  writer.Arg("correlation", overhead.correlation_id());
  if (overhead.jit == nullptr) return;
  const JitOperation& jit = *overhead.jit;
  writer.Arg("device", analysis.gpus.Of(jit.instance, jit.device_id).number);
  if (jit.tid != 0) writer.Arg("thread", jit.tid);
  writer.Arg("compilation", jit.jit_correlation_id);
  writer.Arg("size of the cache", jit.cache_size_bytes);
  writer.ArgText("cache", analysis.model.Text(jit.cache_path));
}

void WriteWorkArgs(const Analysis& analysis, const GpuWork& work, TraceWriter& writer) {
  const LoadedEvents& events = analysis.model.events;
  switch (work.kind) {
    case WorkKind::kKernel:
      return WriteAllArgs(analysis, events.kernels[work.index], work, writer);
    case WorkKind::kMemcpy:
      return WriteAllArgs(analysis, events.memcpys[work.index], work, writer);
    case WorkKind::kMemset:
      return WriteAllArgs(analysis, events.memsets[work.index], work, writer);
    case WorkKind::kGraph:
      return WriteAllArgs(analysis, events.graph_launches[work.index], work, writer);
    case WorkKind::kSynchronization:
      return WriteAllArgs(analysis, events.synchronizations[work.index], work, writer);
  }
}

}  // namespace xpu
