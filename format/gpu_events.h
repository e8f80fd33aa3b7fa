// The events of the GPU side; part of door 3, whose conventions are in format/events.h.
#pragma once

#include <cstdint>

#include "format/stack.h"

namespace xpu {

// ---- CUDA processes ----------------------------------------------------------------------------

// What became of the injected library in a process. Values are stored in the file.
enum class InjectState : uint8_t {
  kConnected = 0,  // loaded, nothing known of CUPTI yet
  kActive = 1,     // recording
  kDormant = 2,    // gave up; `detail` says why, the program runs as without us
  kFinished = 3,   // flushed at exit
};

struct GpuProcess {
  uint64_t time_ns = 0;
  InstanceId instance;
  InjectState state = InjectState::kConnected;
  uint32_t pid = 0;
  uint32_t namespace_pid = 0;   // as the program sees itself
  uint32_t cupti_version = 0;   // cuptiGetVersion, 0: unknown
  uint32_t driver_version = 0;  // cuDriverGetVersion, 0: unknown
  StringId cupti_path;
  StringId detail;
};

enum class ClockKind : uint8_t { kCupti = 0 };

// The same instant on two clocks: read monotonic, other, monotonic.
struct ClockPair {
  InstanceId instance;
  ClockKind clock = ClockKind::kCupti;
  uint64_t before_ns = 0;  // CLOCK_MONOTONIC
  uint64_t clock_ns = 0;   // the other clock
  uint64_t after_ns = 0;   // CLOCK_MONOTONIC
};

enum class ApiDomain : uint8_t { kDriver = 1, kRuntime = 2 };  // CUPTI_CB_DOMAIN_*_API

// The name that CUPTI gives a callback id; ids change meaning between CUDA versions.
struct CallbackName {
  InstanceId instance;
  ApiDomain domain = ApiDomain::kDriver;
  uint32_t callback_id = 0;
  StringId name;
};

// One call of the CUDA API, from our own callback: the outermost one of a correlation id, so a
// runtime call and the driver call inside it are one event, the runtime's.
struct ApiCall {
  InstanceId instance;
  ApiDomain domain = ApiDomain::kDriver;
  uint32_t callback_id = 0;
  uint32_t correlation_id = 0;
  uint32_t tid = 0;  // as the program's namespace sees it
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  int32_t return_value = 0;
  // Nodes of CUDA graphs that this call made. A launch, copy or set that made one was captured from
  // its stream: the GPU does not run it now, and no record of it comes.
  uint32_t graph_nodes = 0;
};

// Values are stored in the file.
enum class GraphNodeChange : uint8_t {
  kCreated = 0,  // by the call `correlation_id`
  kCloned = 1,   // from `original_node_id`, by an instantiation or a clone of the graph
  kUpdated = 2,  // got other parameters; still stands for `original_node_id`
  // Not one node: each node of the executable graph `graph_id` now does what the node with its
  // index in the graph `original_node_id >> 32` does.
  kGraphUpdated = 3,
};

// What became of a node of a CUDA graph. GPU records name the node of the executable graph; follow
// `original_node_id` to the node that the program made, and its call to the code that did.
struct GraphNode {
  InstanceId instance;
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  GraphNodeChange change = GraphNodeChange::kCreated;
  uint64_t node_id = 0;  // cuptiGetGraphNodeId: Kernel::graph_node_id
  uint64_t original_node_id = 0;
  uint32_t graph_id = 0;   // cuptiGetGraphId: Kernel::graph_id, GraphLaunch::graph_id
  uint32_t node_type = 0;  // CUgraphNodeType: 0 kernel, 1 copy, 2 set, 3 host function, ...
  uint32_t tid = 0;        // as the program's namespace sees it
  // ApiCall::correlation_id of the watched call that was under way on this thread; 0: none was.
  uint32_t correlation_id = 0;
};

// The CPU stack at the entry of the call with this correlation id.
struct LaunchStack {
  InstanceId instance;
  uint32_t correlation_id = 0;
  ApiDomain domain = ApiDomain::kDriver;
  uint32_t callback_id = 0;
  uint64_t time_ns = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t cpu = 0;
  StackId stack;
  uint8_t stack_flags = 0;
  StackId python_stack;  // as of a CpuSample
};

// ---- GPU activity: CUPTI's records, field by field. Times in CUPTI clock.
// ------------------------
//
// `tail`: the bytes of the record behind the last field that this version of xpu knows, interned; a
// newer CUPTI loses nothing. Pointers, padding and reserved members are left out.

struct Kernel {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  uint64_t start_ns = 0;  // 0 with end_ns 0: CUPTI could not time it
  uint64_t end_ns = 0;
  uint64_t completed_ns = 0;
  uint64_t queued_ns = 0;
  uint64_t submitted_ns = 0;
  uint32_t correlation_id = 0;
  uint32_t device_id = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t channel_id = 0;
  uint32_t channel_type = 0;
  uint32_t graph_id = 0;
  uint64_t graph_node_id = 0;
  int64_t grid_id = 0;
  StringId name;  // mangled, as CUPTI gives it
  int32_t grid_x = 0, grid_y = 0, grid_z = 0;
  int32_t block_x = 0, block_y = 0, block_z = 0;
  uint32_t cluster_x = 0, cluster_y = 0, cluster_z = 0;
  uint32_t cluster_scheduling_policy = 0;
  uint32_t max_potential_cluster_size = 0;
  uint32_t max_active_clusters = 0;
  uint16_t registers_per_thread = 0;
  int32_t static_shared_memory_bytes = 0;
  int32_t dynamic_shared_memory_bytes = 0;
  uint32_t shared_memory_executed_bytes = 0;
  uint32_t local_memory_per_thread_bytes = 0;
  uint64_t local_memory_total_bytes = 0;
  uint8_t cache_config = 0;  // requested in the low 4 bits, executed in the high 4
  uint8_t shared_memory_config = 0;
  uint32_t partitioned_global_cache_requested = 0;
  uint32_t partitioned_global_cache_executed = 0;
  uint32_t shared_memory_limit_config = 0;
  uint8_t shared_memory_carveout_is_requested = 0;
  uint8_t shared_memory_carveout_requested = 0;
  uint8_t launch_type = 0;
  uint8_t is_device_launched = 0;
  StringId tail;
};

// MEMCPY and MEMCPY2 (peer to peer).
struct Memcpy {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  bool peer_to_peer = false;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t size_bytes = 0;
  uint32_t correlation_id = 0;
  uint32_t runtime_correlation_id = 0;
  uint32_t device_id = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t source_device_id = 0, source_context_id = 0;            // peer to peer only
  uint32_t destination_device_id = 0, destination_context_id = 0;  // peer to peer only
  uint32_t channel_id = 0;
  uint32_t channel_type = 0;
  uint32_t graph_id = 0;
  uint64_t graph_node_id = 0;
  uint64_t copy_count = 0;
  uint8_t copy_kind = 0;         // CUpti_ActivityMemcpyKind
  uint8_t source_kind = 0;       // CUpti_ActivityMemoryKind
  uint8_t destination_kind = 0;  // CUpti_ActivityMemoryKind
  uint8_t flags = 0;
  uint8_t is_device_launched = 0;
  StringId tail;
};

struct Memset {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t size_bytes = 0;
  uint32_t value = 0;
  uint32_t correlation_id = 0;
  uint32_t device_id = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t channel_id = 0;
  uint32_t channel_type = 0;
  uint32_t graph_id = 0;
  uint64_t graph_node_id = 0;
  uint16_t flags = 0;
  uint16_t memory_kind = 0;
  uint8_t is_device_launched = 0;
  StringId tail;
};

struct Synchronization {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t type = 0;  // CUpti_ActivitySynchronizationType
  uint32_t correlation_id = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t event_id = 0;  // of CUPTI or, as its records are not asked for, of xpu: no handle
  uint64_t event_sync_id = 0;
  uint32_t return_value = 0;
  StringId tail;
};

// GRAPH_TRACE: one replay of a CUDA graph.
struct GraphLaunch {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t correlation_id = 0;
  uint32_t device_id = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t graph_id = 0;
  uint32_t end_device_id = 0;
  uint32_t end_context_id = 0;
  StringId tail;
};

// Time that the driver or CUPTI spent on itself: lazy loading, instrumentation, full buffers.
struct Overhead {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t overhead_kind = 0;                                  // CUpti_ActivityOverheadKind
  uint32_t object_kind = 0;                                    // CUpti_ActivityObjectKind
  uint32_t object_id_0 = 0, object_id_1 = 0, object_id_2 = 0;  // the union of ids, word by word
  uint32_t correlation_id = 0;
  StringId tail;
};

// MEMORY2: memory of a device was allocated or freed.
struct MemoryOperation {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  uint64_t time_ns = 0;      // on CUPTI's clock
  uint32_t operation = 0;    // CUpti_ActivityMemoryOperationType: 1 allocation, 2 release
  uint32_t memory_kind = 0;  // CUpti_ActivityMemoryKind
  uint32_t correlation_id = 0;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint32_t device_id = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  bool is_async = false;
  uint32_t pool_type = 0;  // CUpti_ActivityMemoryPoolType; 0: no pool
  uint64_t pool_address = 0;
  uint64_t pool_size_bytes = 0;
  uint64_t pool_utilized_bytes = 0;
  StringId name;  // of the variable, for static memory of a module
  StringId tail;
};

// JIT: the driver compiled code for the device, or took it from its cache or put it there.
struct JitOperation {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  uint64_t start_ns = 0;  // on CUPTI's clock; 0 with end_ns 0: not timed
  uint64_t end_ns = 0;
  uint32_t entry_kind = 0;  // CUpti_ActivityJitEntryType: 1 PTX to machine code, 2 NVVM IR to PTX
  uint32_t operation = 0;  // CUpti_ActivityJitOperationType: 1 cache load, 2 cache store, 3 compile
  uint32_t device_id = 0;
  uint32_t correlation_id = 0;      // of the API call that asked for it
  uint64_t jit_correlation_id = 0;  // the same for the operations of one compilation
  uint64_t cache_size_bytes = 0;
  StringId cache_path;
  uint32_t tid = 0;  // as the program sees it; 0: an older record, which does not say
  StringId tail;
};

// The parts of the DEVICE record that reports use; the whole record is a RawActivity beside it.
struct Device {
  InstanceId instance;
  uint32_t device_id = 0;
  StringId name;
  StringId uuid;  // 16 bytes
  uint32_t compute_capability_major = 0, compute_capability_minor = 0;
  uint32_t multiprocessor_count = 0;
  uint64_t global_memory_bytes = 0;
};

// A record of a kind that this version does not take apart (DEVICE, CONTEXT, ... included).
struct RawActivity {
  InstanceId instance;
  uint32_t kind = 0;  // CUpti_ActivityKind
  StringId bytes;     // the record as CUPTI laid it out, pointers zeroed where we know them
  StringId name;      // the text of its name pointer, where it has one
};

}  // namespace xpu
