// The part of fields.h for the events of gpu_events.h.
#pragma once

#include <concepts>
#include <type_traits>

#include "format/gpu_events.h"

namespace xpu {

// An event, const or not.
template <typename T, typename Event>
concept SameEvent = std::same_as<std::remove_const_t<T>, Event>;

template <SameEvent<GpuProcess> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("time_ns", event.time_ns);
  visit("instance", event.instance);
  visit("state", event.state);
  visit("pid", event.pid);
  visit("namespace_pid", event.namespace_pid);
  visit("cupti_version", event.cupti_version);
  visit("driver_version", event.driver_version);
  visit("cupti_path", event.cupti_path);
  visit("detail", event.detail);
}

template <SameEvent<ClockPair> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("clock", event.clock);
  visit("before_ns", event.before_ns);
  visit("clock_ns", event.clock_ns);
  visit("after_ns", event.after_ns);
}

template <SameEvent<CallbackName> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("domain", event.domain);
  visit("callback_id", event.callback_id);
  visit("name", event.name);
}

template <SameEvent<ApiCall> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("domain", event.domain);
  visit("callback_id", event.callback_id);
  visit("correlation_id", event.correlation_id);
  visit("tid", event.tid);
  visit("start_ns", event.start_ns);
  visit("end_ns", event.end_ns);
  visit("return_value", event.return_value);
  visit("graph_nodes", event.graph_nodes);
}

template <SameEvent<LaunchStack> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("correlation_id", event.correlation_id);
  visit("domain", event.domain);
  visit("callback_id", event.callback_id);
  visit("time_ns", event.time_ns);
  visit("pid", event.pid);
  visit("tid", event.tid);
  visit("cpu", event.cpu);
  visit("stack", event.stack);
  visit("stack_flags", event.stack_flags);
  visit("python_stack", event.python_stack);
}

template <SameEvent<Kernel> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("record_size_bytes", event.record_size_bytes);
  visit("start_ns", event.start_ns);
  visit("end_ns", event.end_ns);
  visit("completed_ns", event.completed_ns);
  visit("queued_ns", event.queued_ns);
  visit("submitted_ns", event.submitted_ns);
  visit("correlation_id", event.correlation_id);
  visit("device_id", event.device_id);
  visit("context_id", event.context_id);
  visit("stream_id", event.stream_id);
  visit("channel_id", event.channel_id);
  visit("channel_type", event.channel_type);
  visit("graph_id", event.graph_id);
  visit("graph_node_id", event.graph_node_id);
  visit("grid_id", event.grid_id);
  visit("name", event.name);
  visit("grid_x", event.grid_x);
  visit("grid_y", event.grid_y);
  visit("grid_z", event.grid_z);
  visit("block_x", event.block_x);
  visit("block_y", event.block_y);
  visit("block_z", event.block_z);
  visit("cluster_x", event.cluster_x);
  visit("cluster_y", event.cluster_y);
  visit("cluster_z", event.cluster_z);
  visit("cluster_scheduling_policy", event.cluster_scheduling_policy);
  visit("max_potential_cluster_size", event.max_potential_cluster_size);
  visit("max_active_clusters", event.max_active_clusters);
  visit("registers_per_thread", event.registers_per_thread);
  visit("static_shared_memory_bytes", event.static_shared_memory_bytes);
  visit("dynamic_shared_memory_bytes", event.dynamic_shared_memory_bytes);
  visit("shared_memory_executed_bytes", event.shared_memory_executed_bytes);
  visit("local_memory_per_thread_bytes", event.local_memory_per_thread_bytes);
  visit("local_memory_total_bytes", event.local_memory_total_bytes);
  visit("cache_config", event.cache_config);
  visit("shared_memory_config", event.shared_memory_config);
  visit("partitioned_global_cache_requested", event.partitioned_global_cache_requested);
  visit("partitioned_global_cache_executed", event.partitioned_global_cache_executed);
  visit("shared_memory_limit_config", event.shared_memory_limit_config);
  visit("shared_memory_carveout_is_requested", event.shared_memory_carveout_is_requested);
  visit("shared_memory_carveout_requested", event.shared_memory_carveout_requested);
  visit("launch_type", event.launch_type);
  visit("is_device_launched", event.is_device_launched);
  visit("tail", event.tail);
}

template <SameEvent<Memcpy> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("record_size_bytes", event.record_size_bytes);
  visit("peer_to_peer", event.peer_to_peer);
  visit("start_ns", event.start_ns);
  visit("end_ns", event.end_ns);
  visit("size_bytes", event.size_bytes);
  visit("correlation_id", event.correlation_id);
  visit("runtime_correlation_id", event.runtime_correlation_id);
  visit("device_id", event.device_id);
  visit("context_id", event.context_id);
  visit("stream_id", event.stream_id);
  visit("source_device_id", event.source_device_id);
  visit("source_context_id", event.source_context_id);
  visit("destination_device_id", event.destination_device_id);
  visit("destination_context_id", event.destination_context_id);
  visit("channel_id", event.channel_id);
  visit("channel_type", event.channel_type);
  visit("graph_id", event.graph_id);
  visit("graph_node_id", event.graph_node_id);
  visit("copy_count", event.copy_count);
  visit("copy_kind", event.copy_kind);
  visit("source_kind", event.source_kind);
  visit("destination_kind", event.destination_kind);
  visit("flags", event.flags);
  visit("is_device_launched", event.is_device_launched);
  visit("tail", event.tail);
}

template <SameEvent<Memset> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("record_size_bytes", event.record_size_bytes);
  visit("start_ns", event.start_ns);
  visit("end_ns", event.end_ns);
  visit("size_bytes", event.size_bytes);
  visit("value", event.value);
  visit("correlation_id", event.correlation_id);
  visit("device_id", event.device_id);
  visit("context_id", event.context_id);
  visit("stream_id", event.stream_id);
  visit("channel_id", event.channel_id);
  visit("channel_type", event.channel_type);
  visit("graph_id", event.graph_id);
  visit("graph_node_id", event.graph_node_id);
  visit("flags", event.flags);
  visit("memory_kind", event.memory_kind);
  visit("is_device_launched", event.is_device_launched);
  visit("tail", event.tail);
}

template <SameEvent<Synchronization> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("record_size_bytes", event.record_size_bytes);
  visit("start_ns", event.start_ns);
  visit("end_ns", event.end_ns);
  visit("type", event.type);
  visit("correlation_id", event.correlation_id);
  visit("context_id", event.context_id);
  visit("stream_id", event.stream_id);
  visit("event_id", event.event_id);
  visit("event_sync_id", event.event_sync_id);
  visit("return_value", event.return_value);
  visit("tail", event.tail);
}

template <SameEvent<GraphLaunch> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("record_size_bytes", event.record_size_bytes);
  visit("start_ns", event.start_ns);
  visit("end_ns", event.end_ns);
  visit("correlation_id", event.correlation_id);
  visit("device_id", event.device_id);
  visit("context_id", event.context_id);
  visit("stream_id", event.stream_id);
  visit("graph_id", event.graph_id);
  visit("end_device_id", event.end_device_id);
  visit("end_context_id", event.end_context_id);
  visit("tail", event.tail);
}

template <SameEvent<Overhead> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("record_size_bytes", event.record_size_bytes);
  visit("start_ns", event.start_ns);
  visit("end_ns", event.end_ns);
  visit("overhead_kind", event.overhead_kind);
  visit("object_kind", event.object_kind);
  visit("object_id_0", event.object_id_0);
  visit("object_id_1", event.object_id_1);
  visit("object_id_2", event.object_id_2);
  visit("correlation_id", event.correlation_id);
  visit("tail", event.tail);
}

template <SameEvent<MemoryOperation> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("record_size_bytes", event.record_size_bytes);
  visit("time_ns", event.time_ns);
  visit("operation", event.operation);
  visit("memory_kind", event.memory_kind);
  visit("correlation_id", event.correlation_id);
  visit("address", event.address);
  visit("size_bytes", event.size_bytes);
  visit("device_id", event.device_id);
  visit("context_id", event.context_id);
  visit("stream_id", event.stream_id);
  visit("is_async", event.is_async);
  visit("pool_type", event.pool_type);
  visit("pool_address", event.pool_address);
  visit("pool_size_bytes", event.pool_size_bytes);
  visit("pool_utilized_bytes", event.pool_utilized_bytes);
  visit("name", event.name);
  visit("tail", event.tail);
}

template <SameEvent<JitOperation> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("record_size_bytes", event.record_size_bytes);
  visit("start_ns", event.start_ns);
  visit("end_ns", event.end_ns);
  visit("entry_kind", event.entry_kind);
  visit("operation", event.operation);
  visit("device_id", event.device_id);
  visit("correlation_id", event.correlation_id);
  visit("jit_correlation_id", event.jit_correlation_id);
  visit("cache_size_bytes", event.cache_size_bytes);
  visit("cache_path", event.cache_path);
  visit("tid", event.tid);
  visit("tail", event.tail);
}

template <SameEvent<Device> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("device_id", event.device_id);
  visit("name", event.name);
  visit("uuid", event.uuid);
  visit("compute_capability_major", event.compute_capability_major);
  visit("compute_capability_minor", event.compute_capability_minor);
  visit("multiprocessor_count", event.multiprocessor_count);
  visit("global_memory_bytes", event.global_memory_bytes);
}

template <SameEvent<RawActivity> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("kind", event.kind);
  visit("bytes", event.bytes);
  visit("name", event.name);
}

template <SameEvent<GraphNode> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("time_ns", event.time_ns);
  visit("change", event.change);
  visit("node_id", event.node_id);
  visit("original_node_id", event.original_node_id);
  visit("graph_id", event.graph_id);
  visit("node_type", event.node_type);
  visit("tid", event.tid);
  visit("correlation_id", event.correlation_id);
}

}  // namespace xpu
