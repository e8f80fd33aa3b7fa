// The part of CUPTI (CUDA 13.0) that the simulated libcupti.so.13 offers: the genuine names,
// signatures, values and layouts, written by us. tests/tools/cupti_raw compiles with it, so the
// recorder of the real captures also records the simulated device. What the captures and CUDA 13.0
// have and nobody here uses is left out. Where a toolkit is found, tests/unit/fake_cuda compares
// this with its cupti.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cuda.h"

#define CUPTIAPI
#define CUPTI_API_VERSION 130001

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  CUPTI_SUCCESS = 0,
  CUPTI_ERROR_INVALID_PARAMETER = 1,
  CUPTI_ERROR_INVALID_OPERATION = 7,
  CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
  CUPTI_ERROR_NOT_READY = 13,
  CUPTI_ERROR_NOT_INITIALIZED = 15,
  CUPTI_ERROR_INVALID_STREAM = 20,
  CUPTI_ERROR_INVALID_KIND = 21,
  CUPTI_ERROR_NOT_SUPPORTED = 27,
  CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
  CUPTI_ERROR_UNKNOWN = 999,
  CUPTI_ERROR_FORCE_INT = 0x7fffffff,
} CUptiResult;

typedef enum {
  CUPTI_CB_DOMAIN_DRIVER_API = 1,
  CUPTI_CB_DOMAIN_RUNTIME_API = 2,
  CUPTI_CB_DOMAIN_RESOURCE = 3,
  CUPTI_CB_DOMAIN_SYNCHRONIZE = 4,
  CUPTI_CB_DOMAIN_NVTX = 5,
  CUPTI_CB_DOMAIN_STATE = 6,
  CUPTI_CB_DOMAIN_SIZE = 7,
} CUpti_CallbackDomain;

typedef enum { CUPTI_API_ENTER = 0, CUPTI_API_EXIT = 1 } CUpti_ApiCallbackSite;

enum CUpti_driver_api_trace_cbid {
  CUPTI_DRIVER_TRACE_CBID_cuLaunch = 115,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid = 116,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync = 117,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel = 307,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz = 442,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel = 477,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz = 478,
  CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch = 514,
  CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz = 515,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx = 652,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz = 653,
};

enum CUpti_runtime_api_trace_cbid {
  CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000 = 211,
  CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000 = 214,
  CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000 = 269,
  CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000 = 270,
  CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060 = 430,
  CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060 = 431,
  CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000 = 505,
  CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000 = 506,
};

typedef enum {
  CUPTI_CBID_RESOURCE_CONTEXT_CREATED = 1,
  CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING = 2,
  CUPTI_CBID_RESOURCE_STREAM_CREATED = 3,
  CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING = 4,
  CUPTI_CBID_RESOURCE_CU_INIT_FINISHED = 5,
  CUPTI_CBID_RESOURCE_MODULE_LOADED = 6,
  CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING = 7,
  CUPTI_CBID_RESOURCE_MODULE_PROFILED = 8,
  CUPTI_CBID_RESOURCE_GRAPH_CREATED = 9,
  CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING = 10,
  CUPTI_CBID_RESOURCE_GRAPH_CLONED = 11,
  CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING = 12,
  CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED = 13,
  CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING = 14,
  CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED = 15,
  CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_DESTROY_STARTING = 16,
  CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING = 17,
  CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED = 18,
  CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING = 19,
  CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED = 20,
  CUPTI_CBID_RESOURCE_STREAM_ATTRIBUTE_CHANGED = 21,
  CUPTI_CBID_RESOURCE_GRAPH_NODE_UPDATED = 22,
  CUPTI_CBID_RESOURCE_GRAPH_NODE_SET_PARAMS = 23,
} CUpti_CallbackIdResource;

typedef uint32_t CUpti_CallbackId;
typedef struct CUpti_Subscriber_st* CUpti_SubscriberHandle;

typedef struct {
  CUpti_ApiCallbackSite callbackSite;
  const char* functionName;
  const void* functionParams;
  void* functionReturnValue;
  const char* symbolName;
  CUcontext context;
  uint32_t contextUid;
  uint64_t* correlationData;
  uint32_t correlationId;
} CUpti_CallbackData;

typedef struct {
  CUcontext context;
  union {
    CUstream stream;
  } resourceHandle;
  void* resourceDescriptor;
} CUpti_ResourceData;

typedef struct {
  uint32_t moduleId;
  size_t cubinSize;
  const char* pCubin;
} CUpti_ModuleResourceData;

typedef struct {
  CUgraph graph;
  CUgraph originalGraph;
  CUgraphNode node;
  CUgraphNode originalNode;
  CUgraphNodeType nodeType;
  CUgraphNode dependency;
  CUgraphExec graphExec;
} CUpti_GraphData;

typedef void (*CUpti_CallbackFunc)(void* userdata, CUpti_CallbackDomain domain,
                                   CUpti_CallbackId cbid, const void* cbdata);

typedef struct {
  size_t structSize;
  const char* subscriberName;
  char* oldSubscriberName;
  size_t oldSubscriberSize;
} CUpti_SubscriberParams;
#define CUpti_SubscriberParams_STRUCT_SIZE sizeof(CUpti_SubscriberParams)

CUptiResult cuptiGetVersion(uint32_t* version);
CUptiResult cuptiGetResultString(CUptiResult result, const char** str);
CUptiResult cuptiGetTimestamp(uint64_t* timestamp);
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                           void* userdata);
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                              void* userdata, CUpti_SubscriberParams* pParams);
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber);
CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId cbid);
CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                              CUpti_CallbackDomain domain);
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name);
CUptiResult cuptiGetContextId(CUcontext context, uint32_t* contextId);
CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t perThreadStream,
                               uint32_t* streamId);
CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t* pId);
CUptiResult cuptiGetGraphExecId(CUgraphExec graphExec, uint32_t* pId);
CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* nodeId);

#ifdef __cplusplus
}
#endif

#include "cupti_activity.h"
