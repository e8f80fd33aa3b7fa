// CUPTI's activity interface; see cupti.h.
#pragma once

#include "cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  CUPTI_ACTIVITY_KIND_INVALID = 0,
  CUPTI_ACTIVITY_KIND_MEMCPY = 1,
  CUPTI_ACTIVITY_KIND_MEMSET = 2,
  CUPTI_ACTIVITY_KIND_KERNEL = 3,
  CUPTI_ACTIVITY_KIND_DRIVER = 4,
  CUPTI_ACTIVITY_KIND_RUNTIME = 5,
  CUPTI_ACTIVITY_KIND_DEVICE = 8,
  CUPTI_ACTIVITY_KIND_CONTEXT = 9,
  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_ACTIVITY_KIND_NAME = 11,
  CUPTI_ACTIVITY_KIND_MARKER = 12,
  CUPTI_ACTIVITY_KIND_OVERHEAD = 17,
  CUPTI_ACTIVITY_KIND_ENVIRONMENT = 20,
  CUPTI_ACTIVITY_KIND_MEMCPY2 = 22,
  CUPTI_ACTIVITY_KIND_FUNCTION = 26,
  CUPTI_ACTIVITY_KIND_MODULE = 27,
  CUPTI_ACTIVITY_KIND_CUDA_EVENT = 36,
  CUPTI_ACTIVITY_KIND_STREAM = 37,
  CUPTI_ACTIVITY_KIND_SYNCHRONIZATION = 38,
  CUPTI_ACTIVITY_KIND_MEMORY2 = 49,
  CUPTI_ACTIVITY_KIND_MEMORY_POOL = 50,
  CUPTI_ACTIVITY_KIND_GRAPH_TRACE = 51,
  CUPTI_ACTIVITY_KIND_JIT = 52,
  CUPTI_ACTIVITY_KIND_COUNT = 56,
  CUPTI_ACTIVITY_KIND_FORCE_INT = 0x7fffffff,
} CUpti_ActivityKind;

typedef enum {
  CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE = 0,
  CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT = 2,
  CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER = 5,
  CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE = 6,
  CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED = 8,
  CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER = 9,
} CUpti_ActivityAttribute;

typedef enum {
  CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT = 0,
  CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM = 1,
} CUpti_ActivityThreadIdType;

typedef enum { CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1 } CUpti_ActivityFlag;

typedef enum { CUPTI_ACTIVITY_OBJECT_THREAD = 2 } CUpti_ActivityObjectKind;

typedef enum {
  CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH = 1 << 16,
  CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION = 2 << 16,
  CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE = 3 << 16,
  CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING = 5 << 16,
  CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL = 6 << 16,
  CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST = 7 << 16,
} CUpti_ActivityOverheadKind;

#define XPU_FAKE_RECORD struct __attribute__((aligned(8)))

typedef XPU_FAKE_RECORD { CUpti_ActivityKind kind; }
CUpti_Activity;

// As they are described for the recorder. Fields of structs inside a record have our names.
#define RECORD(name, type)  \
  typedef XPU_FAKE_RECORD { \
    uint32_t kind;
#define FIELD(c_type, name, offset, cupti_name, since) c_type cupti_name;
#define FIELD_IN(c_type, name, offset, cupti_struct, cupti_name, since) c_type name;
#define ARRAY(c_type, count, name, offset, cupti_name, since) c_type cupti_name[count];
#define TEXT(name, offset, cupti_name, since) const char* cupti_name;
#define POINTER(name, offset, cupti_name, since) void* cupti_name;
#define PADDING(offset, bytes) uint8_t padding_##offset[bytes];
#define END(name, type) \
  }                     \
  type;
#include "../../../cupti_inject/cupti_records.inc"

typedef enum {
  CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN = 1,
  CUPTI_ACTIVITY_JIT_ENTRY_NVVM_IR_TO_PTX = 2,
} CUpti_ActivityJitEntryType;

typedef enum {
  CUPTI_ACTIVITY_JIT_OPERATION_CACHE_LOAD = 1,
  CUPTI_ACTIVITY_JIT_OPERATION_CACHE_STORE = 2,
  CUPTI_ACTIVITY_JIT_OPERATION_COMPILE = 3,
} CUpti_ActivityJitOperationType;

typedef union {
  struct {
    uint32_t processId;
    uint32_t threadId;
  } pt;
  struct {
    uint32_t deviceId;
    uint32_t contextId;
    uint32_t streamId;
  } dcs;
} CUpti_ActivityObjectKindId;

typedef struct {
  uint32_t commandBufferLength;
  uint32_t channelID;
  uint32_t channelType;
} CUpti_ActivityOverheadCommandBufferFullData;

// Only for tests/tools/cupti_raw; the simulated device has no such records.
typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint32_t flags;
  uint64_t timestamp;
  uint32_t id;
  CUpti_ActivityObjectKind objectKind;
  CUpti_ActivityObjectKindId objectId;
  uint32_t pad;
  const char* name;
  const char* domain;
}
CUpti_ActivityMarker2;

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint32_t id;
  uint32_t contextId;
  uint32_t moduleId;
  uint32_t functionIndex;
  uint32_t pad;
  const char* name;
}
CUpti_ActivityFunction;

#undef XPU_FAKE_RECORD

typedef void (*CUpti_BuffersCallbackRequestFunc)(uint8_t** buffer, size_t* size,
                                                 size_t* maxNumRecords);
typedef void (*CUpti_BuffersCallbackCompleteFunc)(CUcontext context, uint32_t streamId,
                                                  uint8_t* buffer, size_t size, size_t validSize);

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type);
CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type);
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                                           CUpti_BuffersCallbackCompleteFunc funcBufferCompleted);
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable);
CUptiResult cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable);
CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t enable);
CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable);
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t* valueSize, void* value);
CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t* valueSize, void* value);
CUptiResult cuptiActivityFlushAll(uint32_t flag);
CUptiResult cuptiActivityFlushPeriod(uint32_t time);
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes,
                                       CUpti_Activity** record);
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t streamId,
                                              size_t* dropped);
CUptiResult cuptiFinalize(void);

#ifdef __cplusplus
}
#endif
