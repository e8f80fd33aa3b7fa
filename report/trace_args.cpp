#include "report/trace_args.h"

#include <array>

#include "format/base/text.h"

namespace xpu {
namespace {

std::string_view MemoryKindName(uint32_t kind) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "unknown", "pageable", "pinned",        "device",
      "array",   "managed",  "device static", "managed static"};
  return kind < kNames.size() ? kNames[kind] : kNames[0];
}

std::string Args(const Kernel& kernel) {
  std::string args = Format(
      "\"grid\":[{},{},{}],\"block\":[{},{},{}],\"registers per thread\":{},"
      "\"static shared memory\":{},\"dynamic shared memory\":{},\"local memory per thread\":{}",
      kernel.grid_x, kernel.grid_y, kernel.grid_z, kernel.block_x, kernel.block_y, kernel.block_z,
      kernel.registers_per_thread, kernel.static_shared_memory_bytes,
      kernel.dynamic_shared_memory_bytes, kernel.local_memory_per_thread_bytes);
  return args;
}

std::string Args(const Memcpy& copy) {
  return Format("\"bytes\":{},\"source\":\"{}\",\"destination\":\"{}\"", copy.size_bytes,
                MemoryKindName(copy.source_kind), MemoryKindName(copy.destination_kind));
}

std::string Args(const Memset& set) {
  return Format("\"bytes\":{},\"value\":{}", set.size_bytes, set.value);
}

std::string Args(const GraphLaunch& graph) { return Format("\"graph\":{}", graph.graph_id); }

std::string Args(const Synchronization& wait) { return Format("\"event\":{}", wait.event_id); }

// What every record has.
template <typename Record>
std::string AllArgs(const Record& record) {
  std::string args = Format("{},\"correlation\":{},\"stream\":{},\"context\":{}", Args(record),
                            record.correlation_id, record.stream_id, record.context_id);
  if constexpr (requires { record.graph_node_id; }) {
    if (record.graph_node_id != 0) {
      AppendFormat(args, ",\"graph\":{},\"graph node\":{}",
                   GraphIdOf(record.graph_id, record.graph_node_id), record.graph_node_id);
    }
  }
  return args;
}

}  // namespace

std::string_view TraceCategory(WorkKind kind) {
  switch (kind) {
    case WorkKind::kKernel:
      return "kernel";
    case WorkKind::kMemcpy:
      return "memcpy";
    case WorkKind::kMemset:
      return "memset";
    case WorkKind::kGraph:
      return "graph";
    case WorkKind::kSynchronization:
      return "synchronization";
  }
  return "gpu";
}

std::string TraceArgs(const EventBatch& events, const GpuWork& work) {
  switch (work.kind) {
    case WorkKind::kKernel:
      return AllArgs(events.kernels[work.index]);
    case WorkKind::kMemcpy:
      return AllArgs(events.memcpys[work.index]);
    case WorkKind::kMemset:
      return AllArgs(events.memsets[work.index]);
    case WorkKind::kGraph:
      return AllArgs(events.graph_launches[work.index]);
    case WorkKind::kSynchronization:
      return AllArgs(events.synchronizations[work.index]);
  }
  return {};
}

}  // namespace xpu
