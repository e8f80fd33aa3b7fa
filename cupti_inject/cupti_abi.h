// The little of CUPTI's binary interface that xpu uses: results, ids, functions, records. Written
// from NVIDIA's documentation with names of our own, so that the injected library and the decoder
// are built on machines without a CUDA Toolkit. Where a toolkit is found, cupti_abi_check.cpp
// asserts every size, offset and value here against its cupti.h. x86-64 Linux.
// The activity records are in cupti_records.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_inject/cupti_pc_sampling.h"
#include "cupti_inject/cupti_records.h"

namespace xpu::cupti {

// ---- results -----------------------------------------------------------------------------------

inline constexpr Result kSuccess = 0;
inline constexpr Result kErrorInvalidParameter = 1;
inline constexpr Result kErrorOutOfMemory = 8;
inline constexpr Result kErrorMaxLimitReached = 12;  // no more records in this buffer
inline constexpr Result kErrorNotInitialized = 15;
inline constexpr Result kErrorInvalidKind = 21;
inline constexpr Result kErrorNotSupported = 27;
inline constexpr Result kErrorInsufficientPrivileges = 35;
inline constexpr Result kErrorOldProfilerInitialized = 36;
inline constexpr Result kErrorMultipleSubscribers = 39;  // another tool holds CUPTI

// ---- callbacks ---------------------------------------------------------------------------------

inline constexpr uint32_t kDomainDriver = 1;
inline constexpr uint32_t kDomainRuntime = 2;
inline constexpr uint32_t kDomainResource = 3;
inline constexpr uint32_t kSiteEnter = 0;
inline constexpr uint32_t kSiteExit = 1;
inline constexpr uint32_t kResourceContextCreated = 1;
inline constexpr uint32_t kResourceContextDestroyStarting = 2;
inline constexpr uint32_t kResourceModuleLoaded = 6;
inline constexpr uint32_t kResourceModuleUnloadStarting = 7;
inline constexpr uint32_t kResourceNodeCreateStarting = 12;
inline constexpr uint32_t kResourceNodeCreated = 13;
inline constexpr uint32_t kResourceNodeDestroyStarting = 14;
inline constexpr uint32_t kResourceExecCreated = 18;
inline constexpr uint32_t kResourceNodeCloned = 20;
inline constexpr uint32_t kResourceNodeUpdated = 22;
inline constexpr uint32_t kResourceNodeSetParameters = 23;

using Subscriber = void*;

// What a callback of the driver or runtime domain is given.
struct CallbackData {
  uint32_t site;              // kSiteEnter, kSiteExit
  const char* function_name;  // without the version suffix
  const void* parameters;
  void* return_value;       // of a CUresult or cudaError_t, valid at the exit
  const char* symbol_name;  // of a launch: the kernel
  void* context;
  uint32_t context_uid;
  uint64_t* correlation_data;  // the subscriber's own word of this call
  uint32_t correlation_id;
};

// What a callback of the resource domain is given.
struct ResourceData {
  void* context;
  void* stream;
  const void* descriptor;  // of the kResourceNode... ids: a GraphData; of modules a ModuleData
};

struct ModuleData {
  uint32_t module_id;
  size_t cubin_bytes;
  const char* cubin;
};

struct GraphExecUpdateParameters {  // of cuGraphExecUpdate and cuGraphExecUpdate_v2, as they begin
  void* graph_exec;
  void* graph;
};

struct GraphData {
  void* graph;
  void* original_graph;
  void* node;
  void* original_node;
  uint32_t node_type;  // CUgraphNodeType; 0 at kResourceNodeCreated, whatever the node is
  void* dependency;
  void* graph_exec;
};

using Callback = void (*)(void* user_data, uint32_t domain, uint32_t callback_id,
                          const void* callback_data);

struct SubscriberParameters {  // of cuptiSubscribe_v2, CUDA 13.0
  size_t struct_size;
  const char* name;     // at most kMaxSubscriberName characters
  char* previous_name;  // room for at least kMinPreviousName
  size_t previous_name_size;
};
inline constexpr size_t kMaxSubscriberName = 53;
inline constexpr size_t kMinPreviousName = 64;

// ---- activity ----------------------------------------------------------------------------------

inline constexpr uint32_t kAttributeDeviceBufferSize = 0;
inline constexpr uint32_t kAttributeDeviceBufferPoolLimit = 2;
inline constexpr uint32_t kAttributeZeroedOutBuffer = 5;      // uint8_t
inline constexpr uint32_t kAttributePinnedDeviceBuffers = 8;  // uint8_t, 0 by default
inline constexpr uint32_t kAttributePerThreadBuffer = 9;      // uint8_t, 1 by default in CUDA 13
inline constexpr uint32_t kFlushForced = 1;                   // flag of cuptiActivityFlushAll
inline constexpr uint32_t kThreadIdSystem = 1;                // of cuptiSetThreadIdType

using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream_id, uint8_t* buffer, size_t size,
                                 size_t valid_size);

// ---- functions ---------------------------------------------------------------------------------

// X(member, name, required, parameters...): every function that we look up. All return a Result.
#define XPU_CUPTI_FUNCTIONS(X)                                                                     \
  X(get_version, "cuptiGetVersion", true, uint32_t* version)                                       \
  X(get_result_string, "cuptiGetResultString", true, Result result, const char** text)             \
  X(get_timestamp, "cuptiGetTimestamp", true, uint64_t* timestamp)                                 \
  X(subscribe, "cuptiSubscribe", true, Subscriber* subscriber, Callback callback, void* user_data) \
  X(subscribe_v2, "cuptiSubscribe_v2", false, Subscriber* subscriber, Callback callback,           \
    void* user_data, SubscriberParameters* parameters)                                             \
  X(unsubscribe, "cuptiUnsubscribe", true, Subscriber subscriber)                                  \
  X(enable_callback, "cuptiEnableCallback", true, uint32_t enable, Subscriber subscriber,          \
    uint32_t domain, uint32_t callback_id)                                                         \
  X(get_callback_name, "cuptiGetCallbackName", true, uint32_t domain, uint32_t callback_id,        \
    const char** name)                                                                             \
  X(set_thread_id_type, "cuptiSetThreadIdType", true, uint32_t type)                               \
  X(set_attribute, "cuptiActivitySetAttribute", true, uint32_t attribute, size_t* value_size,      \
    void* value)                                                                                   \
  X(register_callbacks, "cuptiActivityRegisterCallbacks", true, BufferRequested requested,         \
    BufferCompleted completed)                                                                     \
  X(enable_kind, "cuptiActivityEnable", true, uint32_t kind)                                       \
  X(disable_kind, "cuptiActivityDisable", true, uint32_t kind)                                     \
  X(flush_all, "cuptiActivityFlushAll", true, uint32_t flag)                                       \
  X(finalize, "cuptiFinalize", false)                                                              \
  X(get_next_record, "cuptiActivityGetNextRecord", true, uint8_t* buffer, size_t valid_size,       \
    void** record)                                                                                 \
  X(get_context_id, "cuptiGetContextId", false, void* context, uint32_t* id)                       \
  X(get_stream_id, "cuptiGetStreamIdEx", false, void* context, void* stream, uint8_t per_thread,   \
    uint32_t* id)                                                                                  \
  X(get_graph_id, "cuptiGetGraphId", false, void* graph, uint32_t* id)                             \
  X(get_graph_exec_id, "cuptiGetGraphExecId", false, void* graph_exec, uint32_t* id)               \
  X(get_graph_node_id, "cuptiGetGraphNodeId", false, void* node, uint64_t* id)                     \
  X(get_dropped, "cuptiActivityGetNumDroppedRecords", true, void* context, uint32_t stream_id,     \
    size_t* dropped)                                                                               \
  X(get_device_id, "cuptiGetDeviceId", false, void* context, uint32_t* id)                         \
  X(enable_sampling, "cuptiPCSamplingEnable", false, SamplingParameters* parameters)               \
  X(disable_sampling, "cuptiPCSamplingDisable", false, SamplingParameters* parameters)             \
  X(configure_sampling, "cuptiPCSamplingSetConfigurationAttribute", false,                         \
    SamplingSettings* parameters)                                                                  \
  X(get_sampling_settings, "cuptiPCSamplingGetConfigurationAttribute", false,                      \
    SamplingSettings* parameters)                                                                  \
  X(count_stall_reasons, "cuptiPCSamplingGetNumStallReasons", false, StallReasonCount* parameters) \
  X(get_stall_reasons, "cuptiPCSamplingGetStallReasons", false, StallReasonNames* parameters)      \
  X(get_samples, "cuptiPCSamplingGetData", false, SamplingFetch* parameters)                       \
  X(get_cubin_crc, "cuptiGetCubinCrc", false, CubinCrc* parameters)

struct Functions {
#define XPU_CUPTI_MEMBER(member, name, required, ...) Result (*member)(__VA_ARGS__) = nullptr;
  XPU_CUPTI_FUNCTIONS(XPU_CUPTI_MEMBER)
#undef XPU_CUPTI_MEMBER
};

}  // namespace xpu::cupti
