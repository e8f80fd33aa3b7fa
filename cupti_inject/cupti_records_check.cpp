// Asserts cupti_records.h against the toolkit's cupti.h: sizes and offsets of all versions of the
// activity records. Compiled where a toolkit is found (XPU_CUDA_TOOLKIT); produces no code.
#include <cupti.h>

#include "cupti_inject/cupti_abi_check.h"
#include "cupti_inject/cupti_records.h"

namespace xpu::cupti {
namespace {

#if CUPTI_API_VERSION >= 130000
AT(Kernel, kind, CUpti_ActivityKernel10, kind);
AT(Kernel, cache_config, CUpti_ActivityKernel10, cacheConfig);
AT(Kernel, shared_memory_config, CUpti_ActivityKernel10, sharedMemoryConfig);
AT(Kernel, registers_per_thread, CUpti_ActivityKernel10, registersPerThread);
AT(Kernel, partitioned_global_cache_requested, CUpti_ActivityKernel10,
   partitionedGlobalCacheRequested);
AT(Kernel, partitioned_global_cache_executed, CUpti_ActivityKernel10,
   partitionedGlobalCacheExecuted);
AT(Kernel, start_ns, CUpti_ActivityKernel10, start);
AT(Kernel, end_ns, CUpti_ActivityKernel10, end);
AT(Kernel, completed_ns, CUpti_ActivityKernel10, completed);
AT(Kernel, device_id, CUpti_ActivityKernel10, deviceId);
AT(Kernel, context_id, CUpti_ActivityKernel10, contextId);
AT(Kernel, stream_id, CUpti_ActivityKernel10, streamId);
AT(Kernel, grid_x, CUpti_ActivityKernel10, gridX);
AT(Kernel, grid_y, CUpti_ActivityKernel10, gridY);
AT(Kernel, grid_z, CUpti_ActivityKernel10, gridZ);
AT(Kernel, block_x, CUpti_ActivityKernel10, blockX);
AT(Kernel, block_y, CUpti_ActivityKernel10, blockY);
AT(Kernel, block_z, CUpti_ActivityKernel10, blockZ);
AT(Kernel, static_shared_memory_bytes, CUpti_ActivityKernel10, staticSharedMemory);
AT(Kernel, dynamic_shared_memory_bytes, CUpti_ActivityKernel10, dynamicSharedMemory);
AT(Kernel, local_memory_per_thread_bytes, CUpti_ActivityKernel10, localMemoryPerThread);
AT(Kernel, local_memory_total_bytes, CUpti_ActivityKernel10, localMemoryTotal);
AT(Kernel, correlation_id, CUpti_ActivityKernel10, correlationId);
AT(Kernel, grid_id, CUpti_ActivityKernel10, gridId);
AT(Kernel, name, CUpti_ActivityKernel10, name);
AT(Kernel, reserved, CUpti_ActivityKernel10, reserved0);
AT(Kernel, queued_ns, CUpti_ActivityKernel10, queued);
AT(Kernel, submitted_ns, CUpti_ActivityKernel10, submitted);
AT(Kernel, launch_type, CUpti_ActivityKernel10, launchType);
AT(Kernel, shared_memory_carveout_is_requested, CUpti_ActivityKernel10,
   isSharedMemoryCarveoutRequested);
AT(Kernel, shared_memory_carveout_requested, CUpti_ActivityKernel10, sharedMemoryCarveoutRequested);
AT(Kernel, shared_memory_executed_bytes, CUpti_ActivityKernel10, sharedMemoryExecuted);
AT(Kernel, graph_node_id, CUpti_ActivityKernel10, graphNodeId);
AT(Kernel, shared_memory_limit_config, CUpti_ActivityKernel10, shmemLimitConfig);
AT(Kernel, graph_id, CUpti_ActivityKernel10, graphId);
AT(Kernel, access_policy_window, CUpti_ActivityKernel10, pAccessPolicyWindow);
AT(Kernel, channel_id, CUpti_ActivityKernel10, channelID);
AT(Kernel, channel_type, CUpti_ActivityKernel10, channelType);
AT(Kernel, cluster_x, CUpti_ActivityKernel10, clusterX);
AT(Kernel, cluster_y, CUpti_ActivityKernel10, clusterY);
AT(Kernel, cluster_z, CUpti_ActivityKernel10, clusterZ);
AT(Kernel, cluster_scheduling_policy, CUpti_ActivityKernel10, clusterSchedulingPolicy);
AT(Kernel, local_memory_total_bytes_64, CUpti_ActivityKernel10, localMemoryTotal_v2);
AT(Kernel, max_potential_cluster_size, CUpti_ActivityKernel10, maxPotentialClusterSize);
AT(Kernel, max_active_clusters, CUpti_ActivityKernel10, maxActiveClusters);
AT(Kernel, is_device_launched, CUpti_ActivityKernel10, isDeviceLaunched);
static_assert(sizeof(Kernel) == sizeof(CUpti_ActivityKernel10));
static_assert(SameSizes(kKernelSizes,
                        {sizeof(CUpti_ActivityKernel5), sizeof(CUpti_ActivityKernel6),
                         sizeof(CUpti_ActivityKernel7), sizeof(CUpti_ActivityKernel8),
                         sizeof(CUpti_ActivityKernel9), sizeof(CUpti_ActivityKernel10)}));

AT(Memcpy, kind, CUpti_ActivityMemcpy6, kind);
AT(Memcpy, copy_kind, CUpti_ActivityMemcpy6, copyKind);
AT(Memcpy, source_kind, CUpti_ActivityMemcpy6, srcKind);
AT(Memcpy, destination_kind, CUpti_ActivityMemcpy6, dstKind);
AT(Memcpy, flags, CUpti_ActivityMemcpy6, flags);
AT(Memcpy, size_bytes, CUpti_ActivityMemcpy6, bytes);
AT(Memcpy, start_ns, CUpti_ActivityMemcpy6, start);
AT(Memcpy, end_ns, CUpti_ActivityMemcpy6, end);
AT(Memcpy, device_id, CUpti_ActivityMemcpy6, deviceId);
AT(Memcpy, context_id, CUpti_ActivityMemcpy6, contextId);
AT(Memcpy, stream_id, CUpti_ActivityMemcpy6, streamId);
AT(Memcpy, correlation_id, CUpti_ActivityMemcpy6, correlationId);
AT(Memcpy, runtime_correlation_id, CUpti_ActivityMemcpy6, runtimeCorrelationId);
AT(Memcpy, reserved, CUpti_ActivityMemcpy6, reserved0);
AT(Memcpy, graph_node_id, CUpti_ActivityMemcpy6, graphNodeId);
AT(Memcpy, graph_id, CUpti_ActivityMemcpy6, graphId);
AT(Memcpy, channel_id, CUpti_ActivityMemcpy6, channelID);
AT(Memcpy, channel_type, CUpti_ActivityMemcpy6, channelType);
AT(Memcpy, is_device_launched, CUpti_ActivityMemcpy6, isDeviceLaunched);
AT(Memcpy, copy_count, CUpti_ActivityMemcpy6, copyCount);
static_assert(sizeof(Memcpy) == sizeof(CUpti_ActivityMemcpy6));
static_assert(SameSizes(kMemcpySizes, {sizeof(CUpti_ActivityMemcpy), sizeof(CUpti_ActivityMemcpy3),
                                       sizeof(CUpti_ActivityMemcpy4), sizeof(CUpti_ActivityMemcpy5),
                                       sizeof(CUpti_ActivityMemcpy6)}));

AT(MemcpyPeer, kind, CUpti_ActivityMemcpyPtoP4, kind);
AT(MemcpyPeer, copy_kind, CUpti_ActivityMemcpyPtoP4, copyKind);
AT(MemcpyPeer, source_kind, CUpti_ActivityMemcpyPtoP4, srcKind);
AT(MemcpyPeer, destination_kind, CUpti_ActivityMemcpyPtoP4, dstKind);
AT(MemcpyPeer, flags, CUpti_ActivityMemcpyPtoP4, flags);
AT(MemcpyPeer, size_bytes, CUpti_ActivityMemcpyPtoP4, bytes);
AT(MemcpyPeer, start_ns, CUpti_ActivityMemcpyPtoP4, start);
AT(MemcpyPeer, end_ns, CUpti_ActivityMemcpyPtoP4, end);
AT(MemcpyPeer, device_id, CUpti_ActivityMemcpyPtoP4, deviceId);
AT(MemcpyPeer, context_id, CUpti_ActivityMemcpyPtoP4, contextId);
AT(MemcpyPeer, stream_id, CUpti_ActivityMemcpyPtoP4, streamId);
AT(MemcpyPeer, source_device_id, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
AT(MemcpyPeer, source_context_id, CUpti_ActivityMemcpyPtoP4, srcContextId);
AT(MemcpyPeer, destination_device_id, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
AT(MemcpyPeer, destination_context_id, CUpti_ActivityMemcpyPtoP4, dstContextId);
AT(MemcpyPeer, correlation_id, CUpti_ActivityMemcpyPtoP4, correlationId);
AT(MemcpyPeer, reserved, CUpti_ActivityMemcpyPtoP4, reserved0);
AT(MemcpyPeer, graph_node_id, CUpti_ActivityMemcpyPtoP4, graphNodeId);
AT(MemcpyPeer, graph_id, CUpti_ActivityMemcpyPtoP4, graphId);
AT(MemcpyPeer, channel_id, CUpti_ActivityMemcpyPtoP4, channelID);
AT(MemcpyPeer, channel_type, CUpti_ActivityMemcpyPtoP4, channelType);
static_assert(sizeof(MemcpyPeer) == sizeof(CUpti_ActivityMemcpyPtoP4));
static_assert(SameSizes(kMemcpyPeerSizes,
                        {sizeof(CUpti_ActivityMemcpyPtoP), sizeof(CUpti_ActivityMemcpyPtoP2),
                         sizeof(CUpti_ActivityMemcpyPtoP3), sizeof(CUpti_ActivityMemcpyPtoP4)}));

AT(Memset, kind, CUpti_ActivityMemset4, kind);
AT(Memset, value, CUpti_ActivityMemset4, value);
AT(Memset, size_bytes, CUpti_ActivityMemset4, bytes);
AT(Memset, start_ns, CUpti_ActivityMemset4, start);
AT(Memset, end_ns, CUpti_ActivityMemset4, end);
AT(Memset, device_id, CUpti_ActivityMemset4, deviceId);
AT(Memset, context_id, CUpti_ActivityMemset4, contextId);
AT(Memset, stream_id, CUpti_ActivityMemset4, streamId);
AT(Memset, correlation_id, CUpti_ActivityMemset4, correlationId);
AT(Memset, flags, CUpti_ActivityMemset4, flags);
AT(Memset, memory_kind, CUpti_ActivityMemset4, memoryKind);
AT(Memset, reserved, CUpti_ActivityMemset4, reserved0);
AT(Memset, graph_node_id, CUpti_ActivityMemset4, graphNodeId);
AT(Memset, graph_id, CUpti_ActivityMemset4, graphId);
AT(Memset, channel_id, CUpti_ActivityMemset4, channelID);
AT(Memset, channel_type, CUpti_ActivityMemset4, channelType);
AT(Memset, is_device_launched, CUpti_ActivityMemset4, isDeviceLaunched);
static_assert(sizeof(Memset) == sizeof(CUpti_ActivityMemset4));
static_assert(SameSizes(kMemsetSizes,
                        {sizeof(CUpti_ActivityMemset), sizeof(CUpti_ActivityMemset2),
                         sizeof(CUpti_ActivityMemset3), sizeof(CUpti_ActivityMemset4)}));

AT(Synchronization, kind, CUpti_ActivitySynchronization2, kind);
AT(Synchronization, type, CUpti_ActivitySynchronization2, type);
AT(Synchronization, start_ns, CUpti_ActivitySynchronization2, start);
AT(Synchronization, end_ns, CUpti_ActivitySynchronization2, end);
AT(Synchronization, correlation_id, CUpti_ActivitySynchronization2, correlationId);
AT(Synchronization, context_id, CUpti_ActivitySynchronization2, contextId);
AT(Synchronization, stream_id, CUpti_ActivitySynchronization2, streamId);
AT(Synchronization, event_id, CUpti_ActivitySynchronization2, cudaEventId);
AT(Synchronization, event_sync_id, CUpti_ActivitySynchronization2, cudaEventSyncId);
AT(Synchronization, return_value, CUpti_ActivitySynchronization2, returnValue);
static_assert(sizeof(Synchronization) == sizeof(CUpti_ActivitySynchronization2));
static_assert(SameSizes(kSynchronizationSizes, {sizeof(CUpti_ActivitySynchronization),
                                                sizeof(CUpti_ActivitySynchronization2)}));

AT(GraphTrace, kind, CUpti_ActivityGraphTrace2, kind);
AT(GraphTrace, correlation_id, CUpti_ActivityGraphTrace2, correlationId);
AT(GraphTrace, start_ns, CUpti_ActivityGraphTrace2, start);
AT(GraphTrace, end_ns, CUpti_ActivityGraphTrace2, end);
AT(GraphTrace, device_id, CUpti_ActivityGraphTrace2, deviceId);
AT(GraphTrace, graph_id, CUpti_ActivityGraphTrace2, graphId);
AT(GraphTrace, context_id, CUpti_ActivityGraphTrace2, contextId);
AT(GraphTrace, stream_id, CUpti_ActivityGraphTrace2, streamId);
AT(GraphTrace, reserved, CUpti_ActivityGraphTrace2, reserved);
AT(GraphTrace, end_device_id, CUpti_ActivityGraphTrace2, endDeviceId);
AT(GraphTrace, end_context_id, CUpti_ActivityGraphTrace2, endContextId);
static_assert(sizeof(GraphTrace) == sizeof(CUpti_ActivityGraphTrace2));
static_assert(SameSizes(kGraphTraceSizes,
                        {sizeof(CUpti_ActivityGraphTrace), sizeof(CUpti_ActivityGraphTrace2)}));

AT(MemoryOperation, kind, CUpti_ActivityMemory4, kind);
AT(MemoryOperation, operation, CUpti_ActivityMemory4, memoryOperationType);
AT(MemoryOperation, memory_kind, CUpti_ActivityMemory4, memoryKind);
AT(MemoryOperation, correlation_id, CUpti_ActivityMemory4, correlationId);
AT(MemoryOperation, address, CUpti_ActivityMemory4, address);
AT(MemoryOperation, size_bytes, CUpti_ActivityMemory4, bytes);
AT(MemoryOperation, time_ns, CUpti_ActivityMemory4, timestamp);
AT(MemoryOperation, program_counter, CUpti_ActivityMemory4, PC);
AT(MemoryOperation, process_id, CUpti_ActivityMemory4, processId);
AT(MemoryOperation, device_id, CUpti_ActivityMemory4, deviceId);
AT(MemoryOperation, context_id, CUpti_ActivityMemory4, contextId);
AT(MemoryOperation, stream_id, CUpti_ActivityMemory4, streamId);
AT(MemoryOperation, name, CUpti_ActivityMemory4, name);
AT(MemoryOperation, is_async, CUpti_ActivityMemory4, isAsync);
static_assert(offsetof(MemoryOperation, pool_type) ==
              offsetof(CUpti_ActivityMemory4, memoryPoolConfig.memoryPoolType));
static_assert(offsetof(MemoryOperation, pool_address) ==
              offsetof(CUpti_ActivityMemory4, memoryPoolConfig.address));
static_assert(offsetof(MemoryOperation, pool_size_bytes) ==
              offsetof(CUpti_ActivityMemory4, memoryPoolConfig.pool));
static_assert(offsetof(MemoryOperation, pool_utilized_bytes) ==
              offsetof(CUpti_ActivityMemory4, memoryPoolConfig.utilizedSize));
AT(MemoryOperation, source, CUpti_ActivityMemory4, source);
static_assert(SameSizes(kMemoryOperationSizes,
                        {sizeof(CUpti_ActivityMemory2), sizeof(CUpti_ActivityMemory3),
                         sizeof(CUpti_ActivityMemory4)}));

AT(Overhead, kind, CUpti_ActivityOverhead3, kind);
AT(Overhead, overhead_kind, CUpti_ActivityOverhead3, overheadKind);
AT(Overhead, object_kind, CUpti_ActivityOverhead3, objectKind);
AT(Overhead, object_id, CUpti_ActivityOverhead3, objectId);
AT(Overhead, start_ns, CUpti_ActivityOverhead3, start);
AT(Overhead, end_ns, CUpti_ActivityOverhead3, end);
AT(Overhead, correlation_id, CUpti_ActivityOverhead3, correlationId);
AT(Overhead, reserved, CUpti_ActivityOverhead3, reserved0);
AT(Overhead, data, CUpti_ActivityOverhead3, overheadData);
static_assert(sizeof(Overhead) == sizeof(CUpti_ActivityOverhead3));
static_assert(SameSizes(kOverheadSizes,
                        {sizeof(CUpti_ActivityOverhead), sizeof(CUpti_ActivityOverhead2),
                         sizeof(CUpti_ActivityOverhead3)}));

AT(Jit, kind, CUpti_ActivityJit2, kind);
AT(Jit, entry_kind, CUpti_ActivityJit2, jitEntryType);
AT(Jit, operation, CUpti_ActivityJit2, jitOperationType);
AT(Jit, device_id, CUpti_ActivityJit2, deviceId);
AT(Jit, start_ns, CUpti_ActivityJit2, start);
AT(Jit, end_ns, CUpti_ActivityJit2, end);
AT(Jit, correlation_id, CUpti_ActivityJit2, correlationId);
AT(Jit, jit_correlation_id, CUpti_ActivityJit2, jitOperationCorrelationId);
AT(Jit, cache_size_bytes, CUpti_ActivityJit2, cacheSize);
AT(Jit, cache_path, CUpti_ActivityJit2, cachePath);
AT(Jit, process_id, CUpti_ActivityJit2, processId);
AT(Jit, thread_id, CUpti_ActivityJit2, threadId);
static_assert(SameSizes(kJitSizes, {sizeof(CUpti_ActivityJit), sizeof(CUpti_ActivityJit2)}));

AT(Device, kind, CUpti_ActivityDevice5, kind);
AT(Device, flags, CUpti_ActivityDevice5, flags);
AT(Device, global_memory_bandwidth_kb_per_s, CUpti_ActivityDevice5, globalMemoryBandwidth);
AT(Device, global_memory_bytes, CUpti_ActivityDevice5, globalMemorySize);
AT(Device, constant_memory_bytes, CUpti_ActivityDevice5, constantMemorySize);
AT(Device, l2_cache_bytes, CUpti_ActivityDevice5, l2CacheSize);
AT(Device, threads_per_warp, CUpti_ActivityDevice5, numThreadsPerWarp);
AT(Device, core_clock_khz, CUpti_ActivityDevice5, coreClockRate);
AT(Device, copy_engine_count, CUpti_ActivityDevice5, numMemcpyEngines);
AT(Device, multiprocessor_count, CUpti_ActivityDevice5, numMultiprocessors);
AT(Device, max_instructions_per_cycle, CUpti_ActivityDevice5, maxIPC);
AT(Device, max_warps_per_multiprocessor, CUpti_ActivityDevice5, maxWarpsPerMultiprocessor);
AT(Device, max_blocks_per_multiprocessor, CUpti_ActivityDevice5, maxBlocksPerMultiprocessor);
AT(Device, max_shared_memory_per_multiprocessor_bytes, CUpti_ActivityDevice5,
   maxSharedMemoryPerMultiprocessor);
AT(Device, max_registers_per_multiprocessor, CUpti_ActivityDevice5, maxRegistersPerMultiprocessor);
AT(Device, max_registers_per_block, CUpti_ActivityDevice5, maxRegistersPerBlock);
AT(Device, max_shared_memory_per_block_bytes, CUpti_ActivityDevice5, maxSharedMemoryPerBlock);
AT(Device, max_threads_per_block, CUpti_ActivityDevice5, maxThreadsPerBlock);
AT(Device, max_block_x, CUpti_ActivityDevice5, maxBlockDimX);
AT(Device, max_block_y, CUpti_ActivityDevice5, maxBlockDimY);
AT(Device, max_block_z, CUpti_ActivityDevice5, maxBlockDimZ);
AT(Device, max_grid_x, CUpti_ActivityDevice5, maxGridDimX);
AT(Device, max_grid_y, CUpti_ActivityDevice5, maxGridDimY);
AT(Device, max_grid_z, CUpti_ActivityDevice5, maxGridDimZ);
AT(Device, compute_capability_major, CUpti_ActivityDevice5, computeCapabilityMajor);
AT(Device, compute_capability_minor, CUpti_ActivityDevice5, computeCapabilityMinor);
AT(Device, device_id, CUpti_ActivityDevice5, id);
AT(Device, ecc_enabled, CUpti_ActivityDevice5, eccEnabled);
AT(Device, uuid, CUpti_ActivityDevice5, uuid);
AT(Device, name, CUpti_ActivityDevice5, name);
AT(Device, is_cuda_visible, CUpti_ActivityDevice5, isCudaVisible);
AT(Device, is_mig_enabled, CUpti_ActivityDevice5, isMigEnabled);
AT(Device, gpu_instance_id, CUpti_ActivityDevice5, gpuInstanceId);
AT(Device, compute_instance_id, CUpti_ActivityDevice5, computeInstanceId);
AT(Device, mig_uuid, CUpti_ActivityDevice5, migUuid);
AT(Device, is_numa_node, CUpti_ActivityDevice5, isNumaNode);
AT(Device, numa_id, CUpti_ActivityDevice5, numaId);
static_assert(sizeof(Device) == sizeof(CUpti_ActivityDevice5));
static_assert(SameSizes(kDeviceSizes, {sizeof(CUpti_ActivityDevice3), sizeof(CUpti_ActivityDevice4),
                                       sizeof(CUpti_ActivityDevice5)}));

AT(Context, kind, CUpti_ActivityContext3, kind);
AT(Context, context_id, CUpti_ActivityContext3, contextId);
AT(Context, device_id, CUpti_ActivityContext3, deviceId);
AT(Context, compute_api_kind, CUpti_ActivityContext3, computeApiKind);
AT(Context, null_stream_id, CUpti_ActivityContext3, nullStreamId);
AT(Context, parent_context_id, CUpti_ActivityContext3, parentContextId);
AT(Context, is_green_context, CUpti_ActivityContext3, isGreenContext);
AT(Context, multiprocessor_count, CUpti_ActivityContext3, numMultiprocessors);
AT(Context, cig_mode, CUpti_ActivityContext3, cigMode);
static_assert(sizeof(Context) == sizeof(CUpti_ActivityContext3));
static_assert(SameSizes(kContextSizes,
                        {sizeof(CUpti_ActivityContext), sizeof(CUpti_ActivityContext2),
                         sizeof(CUpti_ActivityContext3)}));

AT(Api, kind, CUpti_ActivityAPI, kind);
AT(Api, callback_id, CUpti_ActivityAPI, cbid);
AT(Api, start_ns, CUpti_ActivityAPI, start);
AT(Api, end_ns, CUpti_ActivityAPI, end);
AT(Api, process_id, CUpti_ActivityAPI, processId);
AT(Api, thread_id, CUpti_ActivityAPI, threadId);
AT(Api, correlation_id, CUpti_ActivityAPI, correlationId);
AT(Api, return_value, CUpti_ActivityAPI, returnValue);
static_assert(sizeof(Api) == sizeof(CUpti_ActivityAPI));
#endif

}  // namespace
}  // namespace xpu::cupti
