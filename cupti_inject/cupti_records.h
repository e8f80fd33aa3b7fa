// CUPTI's activity records: the part of cupti_abi.h that the decoder needs. Layouts as CUPTI puts
// them into activity buffers, field names of our own.
//
// Records grow at their end from one CUPTI version to the next. A struct here is the newest layout
// (13.0); `k<Record>Sizes` lists the sizes of it and of its predecessors, which are its prefixes.
// Read a record with Load(): what its version does not have is 0, also where it has padding that a
// later version made a field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace xpu::cupti {

// CUpti_ActivityKind
inline constexpr uint32_t kKindMemcpy = 1;
inline constexpr uint32_t kKindMemset = 2;
inline constexpr uint32_t kKindKernel = 3;  // serialised kernels
inline constexpr uint32_t kKindDriver = 4;
inline constexpr uint32_t kKindRuntime = 5;
inline constexpr uint32_t kKindDevice = 8;
inline constexpr uint32_t kKindContext = 9;
inline constexpr uint32_t kKindConcurrentKernel = 10;
inline constexpr uint32_t kKindName = 11;
inline constexpr uint32_t kKindOverhead = 17;
inline constexpr uint32_t kKindMemcpy2 = 22;  // peer to peer
inline constexpr uint32_t kKindStream = 37;
inline constexpr uint32_t kKindSynchronization = 38;
inline constexpr uint32_t kKindInternalLaunchApi = 48;
inline constexpr uint32_t kKindMemory2 = 49;
inline constexpr uint32_t kKindGraphTrace = 51;
inline constexpr uint32_t kKindJit = 52;

// Every record begins with its kind.
struct alignas(8) Record {
  uint32_t kind;
};

// kKindConcurrentKernel, kKindKernel. The first 160 bytes are the same since CUDA 11.0.
struct alignas(8) Kernel {
  uint32_t kind;
  uint8_t cache_config;  // requested in the low 4 bits, executed in the high 4
  uint8_t shared_memory_config;
  uint16_t registers_per_thread;
  uint32_t partitioned_global_cache_requested;
  uint32_t partitioned_global_cache_executed;
  uint64_t start_ns;
  uint64_t end_ns;
  uint64_t completed_ns;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  int32_t grid_x, grid_y, grid_z;
  int32_t block_x, block_y, block_z;
  int32_t static_shared_memory_bytes;
  int32_t dynamic_shared_memory_bytes;
  uint32_t local_memory_per_thread_bytes;
  uint32_t local_memory_total_bytes;  // 32 bits of it; local_memory_total_bytes_64 replaces it
  uint32_t correlation_id;
  int64_t grid_id;
  uint64_t name;  // const char*
  uint64_t reserved;
  uint64_t queued_ns;
  uint64_t submitted_ns;
  uint8_t launch_type;
  uint8_t shared_memory_carveout_is_requested;
  uint8_t shared_memory_carveout_requested;
  uint8_t padding;
  uint32_t shared_memory_executed_bytes;
  uint64_t graph_node_id;
  uint32_t shared_memory_limit_config;
  uint32_t graph_id;
  uint64_t access_policy_window;  // a pointer
  uint32_t channel_id;
  uint32_t channel_type;
  uint32_t cluster_x, cluster_y, cluster_z;
  uint32_t cluster_scheduling_policy;
  uint64_t local_memory_total_bytes_64;
  uint32_t max_potential_cluster_size;
  uint32_t max_active_clusters;
  uint8_t is_device_launched;
  uint8_t padding_2[7];
};
inline constexpr size_t kKernelSizes[] = {160, 168, 176, 200, 208, 216};  // Kernel5 to Kernel10

// kKindMemcpy
struct alignas(8) Memcpy {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;
  uint64_t size_bytes;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t correlation_id;
  uint32_t runtime_correlation_id;
  uint32_t padding;
  uint64_t reserved;
  uint64_t graph_node_id;
  uint32_t graph_id;
  uint32_t channel_id;
  uint32_t channel_type;
  uint8_t is_device_launched;
  uint8_t padding_2[3];
  uint64_t copy_count;
};
inline constexpr size_t kMemcpySizes[] = {64, 72, 80, 88, 96};  // Memcpy, Memcpy3 to Memcpy6

// kKindMemcpy2: from one device to another
struct alignas(8) MemcpyPeer {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;
  uint64_t size_bytes;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t source_device_id, source_context_id;
  uint32_t destination_device_id, destination_context_id;
  uint32_t correlation_id;
  uint64_t reserved;
  uint64_t graph_node_id;
  uint32_t graph_id;
  uint32_t channel_id;
  uint32_t channel_type;
};
inline constexpr size_t kMemcpyPeerSizes[] = {72, 80, 88, 96};  // MemcpyPtoP to MemcpyPtoP4

// kKindMemset
struct alignas(8) Memset {
  uint32_t kind;
  uint32_t value;
  uint64_t size_bytes;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t correlation_id;
  uint16_t flags;
  uint16_t memory_kind;
  uint32_t padding;
  uint64_t reserved;
  uint64_t graph_node_id;
  uint32_t graph_id;
  uint32_t channel_id;
  uint32_t channel_type;
  uint8_t is_device_launched;
  uint8_t padding_2[3];
};
inline constexpr size_t kMemsetSizes[] = {64, 72, 80, 88};  // Memset to Memset4

// kKindSynchronization
struct alignas(8) Synchronization {
  uint32_t kind;
  uint32_t type;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t correlation_id;
  uint32_t context_id;
  uint32_t stream_id;  // UINT32_MAX: not of one stream
  uint32_t event_id;
  uint64_t event_sync_id;
  uint32_t return_value;
  uint32_t padding;
};
inline constexpr size_t kSynchronizationSizes[] = {40, 56};

// kKindGraphTrace
struct alignas(8) GraphTrace {
  uint32_t kind;
  uint32_t correlation_id;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t device_id;
  uint32_t graph_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint64_t reserved;
  uint32_t end_device_id;
  uint32_t end_context_id;
};
inline constexpr size_t kGraphTraceSizes[] = {48, 56};

// kKindOverhead
struct alignas(8) Overhead {
  uint32_t kind;
  uint32_t overhead_kind;
  uint32_t object_kind;
  uint32_t object_id[3];  // process and thread, or device, context and stream
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t correlation_id;
  uint32_t reserved;
  uint64_t data;  // a pointer
};
inline constexpr size_t kOverheadSizes[] = {40, 48, 56};

// kKindMemory2
struct alignas(8) MemoryOperation {
  uint32_t kind;
  uint32_t operation;
  uint32_t memory_kind;
  uint32_t correlation_id;
  uint64_t address;
  uint64_t size_bytes;
  uint64_t time_ns;
  uint64_t program_counter;
  uint32_t process_id;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint64_t name;  // const char*
  uint32_t is_async;
  uint32_t padding;
  uint32_t pool_type;
  uint32_t padding_2;
  uint64_t pool_address;
  uint64_t pool_release_threshold;
  uint64_t pool_size_bytes;  // of a pool of this process
  uint64_t pool_utilized_bytes;
  uint64_t source;  // const char*
};
inline constexpr size_t kMemoryOperationSizes[] = {112, 120, 128};  // Memory2 to Memory4

// kKindJit
struct alignas(8) Jit {
  uint32_t kind;
  uint32_t entry_kind;
  uint32_t operation;
  uint32_t device_id;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t correlation_id;
  uint32_t padding;
  uint64_t jit_correlation_id;
  uint64_t cache_size_bytes;
  uint64_t cache_path;  // const char*
  uint32_t process_id;
  uint32_t thread_id;
};
inline constexpr size_t kJitSizes[] = {64, 72};  // Jit, Jit2

// kKindDevice
struct alignas(8) Device {
  uint32_t kind;
  uint32_t flags;
  uint64_t global_memory_bandwidth_kb_per_s;
  uint64_t global_memory_bytes;
  uint32_t constant_memory_bytes;
  uint32_t l2_cache_bytes;
  uint32_t threads_per_warp;
  uint32_t core_clock_khz;
  uint32_t copy_engine_count;
  uint32_t multiprocessor_count;
  uint32_t max_instructions_per_cycle;
  uint32_t max_warps_per_multiprocessor;
  uint32_t max_blocks_per_multiprocessor;
  uint32_t max_shared_memory_per_multiprocessor_bytes;
  uint32_t max_registers_per_multiprocessor;
  uint32_t max_registers_per_block;
  uint32_t max_shared_memory_per_block_bytes;
  uint32_t max_threads_per_block;
  uint32_t max_block_x, max_block_y, max_block_z;
  uint32_t max_grid_x, max_grid_y, max_grid_z;
  uint32_t compute_capability_major, compute_capability_minor;
  uint32_t device_id;
  uint32_t ecc_enabled;
  uint8_t uuid[16];
  uint64_t name;  // const char*
  uint8_t is_cuda_visible;
  uint8_t is_mig_enabled;
  uint8_t reserved[6];
  uint32_t gpu_instance_id;
  uint32_t compute_instance_id;
  uint8_t mig_uuid[16];
  uint32_t is_numa_node;
  uint32_t numa_id;
};
inline constexpr size_t kDeviceSizes[] = {152, 176, 184};  // Device3 to Device5

// kKindContext
struct alignas(8) Context {
  uint32_t kind;
  uint32_t context_id;
  uint32_t device_id;
  uint16_t compute_api_kind;
  uint16_t null_stream_id;
  uint32_t parent_context_id;
  uint8_t is_green_context;
  uint8_t padding;
  uint16_t multiprocessor_count;
  uint32_t cig_mode;
  uint32_t padding_2;
};
inline constexpr size_t kContextSizes[] = {16, 24, 32};

// kKindDriver, kKindRuntime
struct alignas(8) Api {
  uint32_t kind;
  uint32_t callback_id;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t process_id;
  uint32_t thread_id;
  uint32_t correlation_id;
  uint32_t return_value;
};
inline constexpr size_t kApiSizes[] = {40};

namespace detail {
// What this version of the record has as padding and a later one as a field.
template <typename T>
void ClearPadding(T&, size_t) {}
inline void ClearPadding(Memcpy& record, size_t size) {
  if (size <= 80) record.channel_id = 0;
  if (size <= 88) record.is_device_launched = 0;
}
inline void ClearPadding(MemcpyPeer& record, size_t size) {
  if (size <= 88) record.channel_id = 0;
}
inline void ClearPadding(Memset& record, size_t size) {
  if (size <= 80) record.channel_id = 0;
}
}  // namespace detail

// The record of `size` bytes at `bytes` (any alignment, any version); `size` of 0 gives zeros.
template <typename T>
T Load(const void* bytes, size_t size) {
  T record{};
  if (size > 0) std::memcpy(&record, bytes, size < sizeof(T) ? size : sizeof(T));
  detail::ClearPadding(record, size);
  return record;
}

}  // namespace xpu::cupti
