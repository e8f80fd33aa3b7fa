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

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint8_t cacheConfig;
  uint8_t sharedMemoryConfig;
  uint16_t registersPerThread;
  uint32_t partitionedGlobalCacheRequested;
  uint32_t partitionedGlobalCacheExecuted;
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  int32_t gridX;
  int32_t gridY;
  int32_t gridZ;
  int32_t blockX;
  int32_t blockY;
  int32_t blockZ;
  int32_t staticSharedMemory;
  int32_t dynamicSharedMemory;
  uint32_t localMemoryPerThread;
  uint32_t localMemoryTotal;
  uint32_t correlationId;
  int64_t gridId;
  const char* name;
  void* reserved0;
  uint64_t queued;
  uint64_t submitted;
  uint8_t launchType;
  uint8_t isSharedMemoryCarveoutRequested;
  uint8_t sharedMemoryCarveoutRequested;
  uint8_t padding;
  uint32_t sharedMemoryExecuted;
  uint64_t graphNodeId;
  uint32_t shmemLimitConfig;
  uint32_t graphId;
  void* pAccessPolicyWindow;
  uint32_t channelID;
  uint32_t channelType;
  uint32_t clusterX;
  uint32_t clusterY;
  uint32_t clusterZ;
  uint32_t clusterSchedulingPolicy;
  uint64_t localMemoryTotal_v2;
  uint32_t maxPotentialClusterSize;
  uint32_t maxActiveClusters;
  uint8_t isDeviceLaunched;
  uint8_t padding2[7];
}
CUpti_ActivityKernel10;

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint8_t copyKind;
  uint8_t srcKind;
  uint8_t dstKind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t correlationId;
  uint32_t runtimeCorrelationId;
  uint32_t pad;
  void* reserved0;
  uint64_t graphNodeId;
  uint32_t graphId;
  uint32_t channelID;
  uint32_t channelType;
  uint8_t isDeviceLaunched;
  uint8_t pad2[3];
  uint64_t copyCount;
}
CUpti_ActivityMemcpy6;

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint8_t copyKind;
  uint8_t srcKind;
  uint8_t dstKind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t srcDeviceId;
  uint32_t srcContextId;
  uint32_t dstDeviceId;
  uint32_t dstContextId;
  uint32_t correlationId;
  void* reserved0;
  uint64_t graphNodeId;
  uint32_t graphId;
  uint32_t channelID;
  uint32_t channelType;
}
CUpti_ActivityMemcpyPtoP4;

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t correlationId;
  uint16_t flags;
  uint16_t memoryKind;
  uint32_t pad;
  void* reserved0;
  uint64_t graphNodeId;
  uint32_t graphId;
  uint32_t channelID;
  uint32_t channelType;
  uint8_t isDeviceLaunched;
  uint8_t pad2[3];
}
CUpti_ActivityMemset4;

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint32_t memoryOperationType;
  uint32_t memoryKind;
  uint32_t correlationId;
  uint64_t address;
  uint64_t bytes;
  uint64_t timestamp;
  uint64_t PC;
  uint32_t processId;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  const char* name;
  uint32_t isAsync;
  uint32_t pad1;
  struct {
    uint32_t memoryPoolType;
    uint32_t pad2;
    uint64_t address;
    uint64_t releaseThreshold;
    union {
      uint64_t size;
      uint64_t processId;
    } pool;
    uint64_t utilizedSize;
  } memoryPoolConfig;
  const char* source;
}
CUpti_ActivityMemory4;

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint32_t type;
  uint64_t start;
  uint64_t end;
  uint32_t correlationId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t cudaEventId;
  uint64_t cudaEventSyncId;
  uint32_t returnValue;
  uint32_t pad;
}
CUpti_ActivitySynchronization2;

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint32_t correlationId;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t graphId;
  uint32_t contextId;
  uint32_t streamId;
  void* reserved;
  uint32_t endDeviceId;
  uint32_t endContextId;
}
CUpti_ActivityGraphTrace2;

typedef enum {
  CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN = 1,
  CUPTI_ACTIVITY_JIT_ENTRY_NVVM_IR_TO_PTX = 2,
} CUpti_ActivityJitEntryType;

typedef enum {
  CUPTI_ACTIVITY_JIT_OPERATION_CACHE_LOAD = 1,
  CUPTI_ACTIVITY_JIT_OPERATION_CACHE_STORE = 2,
  CUPTI_ACTIVITY_JIT_OPERATION_COMPILE = 3,
} CUpti_ActivityJitOperationType;

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  CUpti_ActivityJitEntryType jitEntryType;
  CUpti_ActivityJitOperationType jitOperationType;
  uint32_t deviceId;
  uint64_t start;
  uint64_t end;
  uint32_t correlationId;
  uint32_t padding;
  uint64_t jitOperationCorrelationId;
  uint64_t cacheSize;
  const char* cachePath;
  uint32_t processId;
  uint32_t threadId;
}
CUpti_ActivityJit2;

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

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  CUpti_ActivityOverheadKind overheadKind;
  CUpti_ActivityObjectKind objectKind;
  CUpti_ActivityObjectKindId objectId;
  uint64_t start;
  uint64_t end;
  uint32_t correlationId;
  uint32_t reserved0;
  void* overheadData;
}
CUpti_ActivityOverhead3;

typedef struct {
  uint32_t commandBufferLength;
  uint32_t channelID;
  uint32_t channelType;
} CUpti_ActivityOverheadCommandBufferFullData;

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint32_t flags;
  uint64_t globalMemoryBandwidth;
  uint64_t globalMemorySize;
  uint32_t constantMemorySize;
  uint32_t l2CacheSize;
  uint32_t numThreadsPerWarp;
  uint32_t coreClockRate;
  uint32_t numMemcpyEngines;
  uint32_t numMultiprocessors;
  uint32_t maxIPC;
  uint32_t maxWarpsPerMultiprocessor;
  uint32_t maxBlocksPerMultiprocessor;
  uint32_t maxSharedMemoryPerMultiprocessor;
  uint32_t maxRegistersPerMultiprocessor;
  uint32_t maxRegistersPerBlock;
  uint32_t maxSharedMemoryPerBlock;
  uint32_t maxThreadsPerBlock;
  uint32_t maxBlockDimX;
  uint32_t maxBlockDimY;
  uint32_t maxBlockDimZ;
  uint32_t maxGridDimX;
  uint32_t maxGridDimY;
  uint32_t maxGridDimZ;
  uint32_t computeCapabilityMajor;
  uint32_t computeCapabilityMinor;
  uint32_t id;
  uint32_t eccEnabled;
  CUuuid uuid;
  const char* name;
  uint8_t isCudaVisible;
  uint8_t isMigEnabled;
  uint8_t reserved[6];
  uint32_t gpuInstanceId;
  uint32_t computeInstanceId;
  CUuuid migUuid;
  uint32_t isNumaNode;
  uint32_t numaId;
}
CUpti_ActivityDevice5;

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint32_t contextId;
  uint32_t deviceId;
  uint16_t computeApiKind;
  uint16_t nullStreamId;
  uint32_t parentContextId;
  uint8_t isGreenContext;
  uint8_t padding;
  uint16_t numMultiprocessors;
  uint32_t cigMode;
  uint32_t padding2;
}
CUpti_ActivityContext3;

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint32_t contextId;
  uint32_t streamId;
  int32_t priority;
  uint32_t flag;
  uint32_t correlationId;
}
CUpti_ActivityStream;

typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  uint32_t cbid;
  uint64_t start;
  uint64_t end;
  uint32_t processId;
  uint32_t threadId;
  uint32_t correlationId;
  uint32_t returnValue;
}
CUpti_ActivityAPI;

// Only for tests/tools/cupti_raw; the simulated device has no such records.
typedef XPU_FAKE_RECORD {
  CUpti_ActivityKind kind;
  CUpti_ActivityObjectKind objectKind;
  CUpti_ActivityObjectKindId objectId;
  uint32_t pad;
  const char* name;
}
CUpti_ActivityName;

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
