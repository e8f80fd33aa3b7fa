#include "record/gpu/cupti_decode.h"

#include <algorithm>
#include <iterator>

#include "cupti_inject/cupti_abi.h"

namespace xpu {
namespace {

using Bytes = std::span<const std::byte>;

std::string_view Text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename Raw>
Bytes TailOf(Bytes record) {
  return record.subspan(std::min(record.size(), sizeof(Raw)));
}

Kernel DecodeKernel(const cupti::Kernel& raw, size_t size) {
  // The 64-bit total came with this size (Kernel8).
  constexpr size_t kWideTotalEnd =
      offsetof(cupti::Kernel, local_memory_total_bytes_64) + sizeof(uint64_t);
  Kernel kernel;
  kernel.start_ns = raw.start_ns;
  kernel.end_ns = raw.end_ns;
  kernel.completed_ns = raw.completed_ns;
  kernel.queued_ns = raw.queued_ns;
  kernel.submitted_ns = raw.submitted_ns;
  kernel.correlation_id = raw.correlation_id;
  kernel.device_id = raw.device_id;
  kernel.context_id = raw.context_id;
  kernel.stream_id = raw.stream_id;
  kernel.channel_id = raw.channel_id;
  kernel.channel_type = raw.channel_type;
  kernel.graph_id = raw.graph_id;
  kernel.graph_node_id = raw.graph_node_id;
  kernel.grid_id = raw.grid_id;
  kernel.grid_x = raw.grid_x;
  kernel.grid_y = raw.grid_y;
  kernel.grid_z = raw.grid_z;
  kernel.block_x = raw.block_x;
  kernel.block_y = raw.block_y;
  kernel.block_z = raw.block_z;
  kernel.cluster_x = raw.cluster_x;
  kernel.cluster_y = raw.cluster_y;
  kernel.cluster_z = raw.cluster_z;
  kernel.cluster_scheduling_policy = raw.cluster_scheduling_policy;
  kernel.max_potential_cluster_size = raw.max_potential_cluster_size;
  kernel.max_active_clusters = raw.max_active_clusters;
  kernel.registers_per_thread = raw.registers_per_thread;
  kernel.static_shared_memory_bytes = raw.static_shared_memory_bytes;
  kernel.dynamic_shared_memory_bytes = raw.dynamic_shared_memory_bytes;
  kernel.shared_memory_executed_bytes = raw.shared_memory_executed_bytes;
  kernel.local_memory_per_thread_bytes = raw.local_memory_per_thread_bytes;
  kernel.local_memory_total_bytes =
      size >= kWideTotalEnd ? raw.local_memory_total_bytes_64 : raw.local_memory_total_bytes;
  kernel.cache_config = raw.cache_config;
  kernel.shared_memory_config = raw.shared_memory_config;
  kernel.partitioned_global_cache_requested = raw.partitioned_global_cache_requested;
  kernel.partitioned_global_cache_executed = raw.partitioned_global_cache_executed;
  kernel.shared_memory_limit_config = raw.shared_memory_limit_config;
  kernel.shared_memory_carveout_is_requested = raw.shared_memory_carveout_is_requested;
  kernel.shared_memory_carveout_requested = raw.shared_memory_carveout_requested;
  kernel.launch_type = raw.launch_type;
  kernel.is_device_launched = raw.is_device_launched;
  return kernel;
}

// What MEMCPY and MEMCPY2 have in common.
template <typename Raw>
Memcpy DecodeCopy(const Raw& raw) {
  Memcpy copy;
  copy.start_ns = raw.start_ns;
  copy.end_ns = raw.end_ns;
  copy.size_bytes = raw.size_bytes;
  copy.correlation_id = raw.correlation_id;
  copy.device_id = raw.device_id;
  copy.context_id = raw.context_id;
  copy.stream_id = raw.stream_id;
  copy.channel_id = raw.channel_id;
  copy.channel_type = raw.channel_type;
  copy.graph_id = raw.graph_id;
  copy.graph_node_id = raw.graph_node_id;
  copy.copy_kind = raw.copy_kind;
  copy.source_kind = raw.source_kind;
  copy.destination_kind = raw.destination_kind;
  copy.flags = raw.flags;
  return copy;
}

Memcpy Decode(const cupti::Memcpy& raw) {
  Memcpy copy = DecodeCopy(raw);
  copy.runtime_correlation_id = raw.runtime_correlation_id;
  copy.copy_count = raw.copy_count;
  copy.is_device_launched = raw.is_device_launched;
  return copy;
}

Memcpy Decode(const cupti::MemcpyPeer& raw) {
  Memcpy copy = DecodeCopy(raw);
  copy.peer_to_peer = true;
  copy.source_device_id = raw.source_device_id;
  copy.source_context_id = raw.source_context_id;
  copy.destination_device_id = raw.destination_device_id;
  copy.destination_context_id = raw.destination_context_id;
  return copy;
}

Memset Decode(const cupti::Memset& raw) {
  Memset set;
  set.start_ns = raw.start_ns;
  set.end_ns = raw.end_ns;
  set.size_bytes = raw.size_bytes;
  set.value = raw.value;
  set.correlation_id = raw.correlation_id;
  set.device_id = raw.device_id;
  set.context_id = raw.context_id;
  set.stream_id = raw.stream_id;
  set.channel_id = raw.channel_id;
  set.channel_type = raw.channel_type;
  set.graph_id = raw.graph_id;
  set.graph_node_id = raw.graph_node_id;
  set.flags = raw.flags;
  set.memory_kind = raw.memory_kind;
  set.is_device_launched = raw.is_device_launched;
  return set;
}

Synchronization Decode(const cupti::Synchronization& raw) {
  Synchronization wait;
  wait.start_ns = raw.start_ns;
  wait.end_ns = raw.end_ns;
  wait.type = raw.type;
  wait.correlation_id = raw.correlation_id;
  wait.context_id = raw.context_id;
  wait.stream_id = raw.stream_id;
  wait.event_id = raw.event_id;
  wait.event_sync_id = raw.event_sync_id;
  wait.return_value = raw.return_value;
  return wait;
}

GraphLaunch Decode(const cupti::GraphTrace& raw) {
  GraphLaunch launch;
  launch.start_ns = raw.start_ns;
  launch.end_ns = raw.end_ns;
  launch.correlation_id = raw.correlation_id;
  launch.device_id = raw.device_id;
  launch.context_id = raw.context_id;
  launch.stream_id = raw.stream_id;
  launch.graph_id = raw.graph_id;
  launch.end_device_id = raw.end_device_id;
  launch.end_context_id = raw.end_context_id;
  return launch;
}

Overhead Decode(const cupti::Overhead& raw) {
  Overhead overhead;
  overhead.start_ns = raw.start_ns;
  overhead.end_ns = raw.end_ns;
  overhead.overhead_kind = raw.overhead_kind;
  overhead.object_kind = raw.object_kind;
  overhead.object_id_0 = raw.object_id[0];
  overhead.object_id_1 = raw.object_id[1];
  overhead.object_id_2 = raw.object_id[2];
  overhead.correlation_id = raw.correlation_id;
  return overhead;
}

MemoryOperation Decode(const cupti::MemoryOperation& raw) {
  MemoryOperation operation;
  operation.time_ns = raw.time_ns;
  operation.operation = raw.operation;
  operation.memory_kind = raw.memory_kind;
  operation.correlation_id = raw.correlation_id;
  operation.address = raw.address;
  operation.size_bytes = raw.size_bytes;
  operation.device_id = raw.device_id;
  operation.context_id = raw.context_id;
  operation.stream_id = raw.stream_id;
  operation.is_async = raw.is_async != 0;
  operation.pool_type = raw.pool_type;
  operation.pool_address = raw.pool_address;
  operation.pool_size_bytes = raw.pool_size_bytes;
  operation.pool_utilized_bytes = raw.pool_utilized_bytes;
  return operation;
}

JitOperation Decode(const cupti::Jit& raw) {
  JitOperation operation;
  operation.start_ns = raw.start_ns;
  operation.end_ns = raw.end_ns;
  operation.entry_kind = raw.entry_kind;
  operation.operation = raw.operation;
  operation.device_id = raw.device_id;
  operation.correlation_id = raw.correlation_id;
  operation.jit_correlation_id = raw.jit_correlation_id;
  operation.cache_size_bytes = raw.cache_size_bytes;
  operation.tid = raw.thread_id;
  return operation;
}

// `sizes`: those of the versions known, the oldest first.
template <typename Raw, typename Sizes>
DecodedActivity DecodeAs(Bytes record, const Sizes& sizes) {
  if (record.size() < *std::begin(sizes)) return {RawActivity{}, {}, {}};
  const auto raw = cupti::Load<Raw>(record.data(), record.size());
  const auto finish = [&](auto event) -> DecodedActivity {
    event.record_size_bytes = static_cast<uint16_t>(std::min<size_t>(record.size(), UINT16_MAX));
    return {event, TailOf<Raw>(record), {}};
  };
  if constexpr (std::is_same_v<Raw, cupti::Kernel>) {
    return finish(DecodeKernel(raw, record.size()));
  } else {
    return finish(Decode(raw));
  }
}

DecodedActivity DecodeDevice(Bytes record) {
  if (record.size() < *std::begin(cupti::kDeviceSizes)) return {RawActivity{}, {}, {}};
  const auto raw = cupti::Load<cupti::Device>(record.data(), record.size());
  Device device;
  device.device_id = raw.device_id;
  device.compute_capability_major = raw.compute_capability_major;
  device.compute_capability_minor = raw.compute_capability_minor;
  device.multiprocessor_count = raw.multiprocessor_count;
  device.global_memory_bytes = raw.global_memory_bytes;
  return {device, {}, record.subspan(offsetof(cupti::Device, uuid), sizeof(raw.uuid))};
}

DecodedActivity DecodeByKind(Bytes record) {
  switch (cupti::Load<cupti::Record>(record.data(), record.size()).kind) {
    case cupti::kKindKernel:
    case cupti::kKindConcurrentKernel:
      return DecodeAs<cupti::Kernel>(record, cupti::kKernelSizes);
    case cupti::kKindMemcpy:
      return DecodeAs<cupti::Memcpy>(record, cupti::kMemcpySizes);
    case cupti::kKindMemcpy2:
      return DecodeAs<cupti::MemcpyPeer>(record, cupti::kMemcpyPeerSizes);
    case cupti::kKindMemset:
      return DecodeAs<cupti::Memset>(record, cupti::kMemsetSizes);
    case cupti::kKindSynchronization:
      return DecodeAs<cupti::Synchronization>(record, cupti::kSynchronizationSizes);
    case cupti::kKindGraphTrace:
      return DecodeAs<cupti::GraphTrace>(record, cupti::kGraphTraceSizes);
    case cupti::kKindOverhead:
      return DecodeAs<cupti::Overhead>(record, cupti::kOverheadSizes);
    case cupti::kKindMemory2:
      return DecodeAs<cupti::MemoryOperation>(record, cupti::kMemoryOperationSizes);
    case cupti::kKindJit:
      return DecodeAs<cupti::Jit>(record, cupti::kJitSizes);
    case cupti::kKindDevice:
      return DecodeDevice(record);
    default:
      return {RawActivity{}, {}, {}};
  }
}

struct ActivityWriter {
  Bytes record;
  KeptText& name;
  InstanceId instance;
  const DecodedActivity& decoded;
  EventSink& sink;

  void operator()(RawActivity& raw) const {
    raw.instance = instance;
    raw.kind = cupti::Load<cupti::Record>(record.data(), record.size()).kind;
    raw.bytes = sink.Intern(Text(record));
    raw.name = sink.Intern(name);
    sink.Write(raw);
  }
  void operator()(Device& device) const {
    device.instance = instance;
    device.name = sink.Intern(name);
    device.uuid = sink.Intern(Text(decoded.uuid));
    sink.Write(device);
    RawActivity raw;
    (*this)(raw);
  }
  void operator()(Kernel& kernel) const {
    kernel.name = sink.Intern(name);
    WriteWithTail(kernel);
  }
  void operator()(MemoryOperation& operation) const {
    operation.name = sink.Intern(name);
    WriteWithTail(operation);
  }
  void operator()(JitOperation& operation) const {
    operation.cache_path = sink.Intern(name);
    WriteWithTail(operation);
  }
  template <typename Event>
  void operator()(Event& event) const {
    WriteWithTail(event);
  }
  template <typename Event>
  void WriteWithTail(Event& event) const {
    event.instance = instance;
    event.tail = sink.Intern(Text(decoded.tail));
    sink.Write(event);
  }
};

// Of an operation on the GPU.
bool LacksTime(const ActivityEvent& event) {
  // CUPTI writes 0 for "no time", and end before start when its device buffers overflowed.
  const auto lacks = [](const auto* work) {
    return work != nullptr && (work->start_ns == 0 || work->end_ns < work->start_ns);
  };
  return lacks(std::get_if<Kernel>(&event)) || lacks(std::get_if<Memcpy>(&event)) ||
         lacks(std::get_if<Memset>(&event)) || lacks(std::get_if<GraphLaunch>(&event));
}

}  // namespace

DecodedActivity DecodeActivity(Bytes record) {
  // Shorter than its kind: not a record.
  if (record.size() < sizeof(uint32_t)) return {RawActivity{}, {}, {}};
  return DecodeByKind(record);
}

void WriteActivity(Bytes record, DecodedActivity& decoded, KeptText& name, InstanceId instance,
                   EventSink& sink) {
  if (LacksTime(decoded.event)) sink.losses().AddUnstored(LossKind::kInvalidTime, 1);
  std::visit(ActivityWriter{record, name, instance, decoded, sink}, decoded.event);
}

uint32_t CorrelationOf(const ActivityEvent& event) {
  if (const auto* kernel = std::get_if<Kernel>(&event)) return kernel->correlation_id;
  if (const auto* copy = std::get_if<Memcpy>(&event)) return copy->correlation_id;
  if (const auto* set = std::get_if<Memset>(&event)) return set->correlation_id;
  if (const auto* graph = std::get_if<GraphLaunch>(&event)) return graph->correlation_id;
  return 0;
}

}  // namespace xpu
