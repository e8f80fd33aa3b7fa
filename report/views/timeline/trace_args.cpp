#include "report/views/timeline/trace_args.h"

#include <algorithm>
#include <limits>

#include "format/base/text.h"
#include "report/query/gpu_memory.h"
#include "report/trace/correlation.h"

namespace xpu {
namespace {

void WriteArgs(const Kernel& kernel, TraceSink& sink) {
  sink.Arg("grid", {kernel.grid_x, kernel.grid_y, kernel.grid_z});
  sink.Arg("block", {kernel.block_x, kernel.block_y, kernel.block_z});
  if (kernel.cluster_x != 0) {
    sink.ArgText("cluster",
                 Format("{} x {} x {}", kernel.cluster_x, kernel.cluster_y, kernel.cluster_z));
  }
  sink.Arg("registers per thread", kernel.registers_per_thread);
  sink.Arg("static shared memory", kernel.static_shared_memory_bytes);
  sink.Arg("dynamic shared memory", kernel.dynamic_shared_memory_bytes);
  sink.Arg("local memory per thread", kernel.local_memory_per_thread_bytes);
}

// Bytes per nanosecond are GB/s.
void WriteBytes(uint64_t bytes, uint64_t duration_ns, TraceSink& sink) {
  sink.Arg("bytes", bytes);
  if (duration_ns == 0 || bytes > std::numeric_limits<uint64_t>::max() / 1000) return;
  sink.ArgThousandths("memory bandwidth (GB/s)", bytes * 1000 / duration_ns);
}

void WriteArgs(const Memcpy& copy, TraceSink& sink) {
  sink.ArgText("source", MemoryKindText(copy.source_kind));
  sink.ArgText("destination", MemoryKindText(copy.destination_kind));
}

void WriteArgs(const Memset& set, TraceSink& sink) { sink.Arg("value", set.value); }

void WriteArgs(const GraphLaunch& graph, TraceSink& sink) { sink.Arg("graph", graph.graph_id); }

void WriteArgs(const Synchronization& wait, TraceSink& sink) {
  if (wait.event_id != kNoSynchronizedObject) sink.Arg("event", wait.event_id);
}

// From the call to the start of its work: when it began, and how much of that the work waited
// after the call had returned. Not of a graph's node, which waits for the nodes before it.
void WriteLatency(const Analysis& analysis, const GpuWork& work, TraceSink& sink) {
  if (work.launch == GpuWork::kNoLaunch) {
    sink.ArgText("launch", "[unknown launch]");
    return;
  }
  // Almost all are matched by id: only the others say how.
  if (work.match != MatchKind::kById) sink.ArgText("matched", MatchText(work.match));
  const Launch& launch = analysis.correlation.launches[work.launch];
  const bool is_node = work.origin != NodeOrigin::kNoNode;
  if (work.kind == WorkKind::kSynchronization || is_node || !launch.has_call) return;
  if (work.start_ns < launch.start_ns) return;  // the clocks are off by as much
  sink.ArgThousandths("launch latency (us)", work.start_ns - launch.start_ns);
  sink.ArgThousandths("queue time (us)", work.start_ns - std::min(work.start_ns, launch.end_ns));
}

template <typename Record>
void WriteAllArgs(const Analysis& analysis, const Record& record, const GpuWork& work,
                  TraceSink& sink) {
  if constexpr (requires { record.size_bytes; }) {
    WriteBytes(record.size_bytes, work.duration_ns, sink);
  }
  WriteArgs(record, sink);
  WriteLatency(analysis, work, sink);
  sink.Arg("device", work.gpu);
  sink.Arg("context", record.context_id);
  if (record.stream_id != kNoSynchronizedObject) sink.Arg("stream", record.stream_id);
  sink.Arg("correlation", record.correlation_id);
  if constexpr (requires { record.graph_node_id; }) {
    if (record.graph_node_id == 0) return;
    sink.Arg("graph", GraphIdOf(record.graph_id, record.graph_node_id));
    sink.Arg("graph node", record.graph_node_id);
  }
}

}  // namespace

void WriteRangeArgs(const Analysis& analysis, const NvtxRange& range, TraceSink& sink) {
  const NvtxEvent& event = *range.event;
  sink.ArgText("style", StyleText(range.style));
  if (range.is_open) sink.ArgText("end", "not in the capture");
  if (event.category != 0) sink.ArgText("category", analysis.nvtx.CategoryOf(event));
  if (event.color != 0) sink.ArgText("color", Format("#{:08x}", event.color));
  const std::string payload = analysis.nvtx.PayloadOf(range);
  if (!payload.empty()) sink.ArgText("payload", payload);
}

void WriteCallArgs(const Launch& launch, TraceSink& sink) {
  if (launch.probe != 0) {
    sink.ArgText("matched", MatchText(launch.stack_match));
  } else {
    sink.Arg("correlation", launch.correlation_id);
    const bool is_by_id = launch.stack_match == MatchKind::kById;
    if (launch.has_stack && !is_by_id) sink.ArgText("stack matched", MatchText(launch.stack_match));
  }
  if (launch.return_value != 0) sink.Arg("error", launch.return_value);
  const LaunchStatus status = LaunchStatusOf(launch);
  if (status == LaunchStatus::kCaptured) sink.Arg("captured graph nodes", launch.graph_nodes);
  if (status == LaunchStatus::kUnmatched) sink.ArgText("work", "[no GPU record]");
}

void WriteOverheadArgs(const Analysis& analysis, const DriverTime& overhead, TraceSink& sink) {
  sink.Arg("correlation", overhead.correlation_id());
  if (overhead.jit == nullptr) return;
  const JitOperation& jit = *overhead.jit;
  sink.Arg("device", analysis.gpus.Of(jit.instance, jit.device_id).number);
  if (jit.tid != 0) sink.Arg("thread", jit.tid);
  sink.Arg("compilation", jit.jit_correlation_id);
  sink.Arg("size of the cache", jit.cache_size_bytes);
  sink.ArgText("cache", analysis.model.Text(jit.cache_path));
}

void WriteWorkArgs(const Analysis& analysis, const GpuWork& work, TraceSink& sink) {
  const LoadedEvents& events = analysis.model.events;
  switch (work.kind) {
    case WorkKind::kKernel:
      return WriteAllArgs(analysis, events.kernels[work.index], work, sink);
    case WorkKind::kMemcpy:
      return WriteAllArgs(analysis, events.memcpys[work.index], work, sink);
    case WorkKind::kMemset:
      return WriteAllArgs(analysis, events.memsets[work.index], work, sink);
    case WorkKind::kGraph:
      return WriteAllArgs(analysis, events.graph_launches[work.index], work, sink);
    case WorkKind::kSynchronization:
      return WriteAllArgs(analysis, events.synchronizations[work.index], work, sink);
  }
}

}  // namespace xpu
