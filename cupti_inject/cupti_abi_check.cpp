// Asserts cupti_abi.h against the toolkit's cupti.h: sizes, offsets, values, signatures.
// Compiled where a toolkit is found (XPU_CUDA_TOOLKIT); produces no code.
#include "cupti_inject/cupti_abi_check.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cupti.h>
#include <cupti_pcsampling.h>

#include "cupti_inject/cupti_abi.h"

namespace xpu::cupti {
namespace {

SAME(kSuccess, CUPTI_SUCCESS);
SAME(kErrorInvalidParameter, CUPTI_ERROR_INVALID_PARAMETER);
SAME(kErrorOutOfMemory, CUPTI_ERROR_OUT_OF_MEMORY);
SAME(kErrorMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(kErrorNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
SAME(kErrorInvalidKind, CUPTI_ERROR_INVALID_KIND);
SAME(kErrorNotSupported, CUPTI_ERROR_NOT_SUPPORTED);
SAME(kErrorInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(kErrorOldProfilerInitialized, CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED);
SAME(kErrorMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);

SAME(kDomainDriver, CUPTI_CB_DOMAIN_DRIVER_API);
SAME(kDomainRuntime, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME(kDomainResource, CUPTI_CB_DOMAIN_RESOURCE);
SAME(kSiteEnter, CUPTI_API_ENTER);
SAME(kSiteExit, CUPTI_API_EXIT);
SAME(kResourceContextCreated, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
SAME(kResourceContextDestroyStarting, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
SAME(kResourceModuleLoaded, CUPTI_CBID_RESOURCE_MODULE_LOADED);
SAME(kResourceModuleUnloadStarting, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
SAME(kResourceNodeCreateStarting, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING);
SAME(kResourceNodeCreated, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
SAME(kResourceNodeDestroyStarting, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING);
SAME(kResourceExecCreated, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
SAME(kResourceNodeCloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
#if CUPTI_API_VERSION >= 130000  // not in 12.4
SAME(kResourceNodeUpdated, CUPTI_CBID_RESOURCE_GRAPH_NODE_UPDATED);
SAME(kResourceNodeSetParameters, CUPTI_CBID_RESOURCE_GRAPH_NODE_SET_PARAMS);
#endif

SAME(kKindInternalLaunchApi, CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API);

SAME(kAttributeDeviceBufferSize, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
SAME(kAttributeDeviceBufferPoolLimit, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
SAME(kAttributeZeroedOutBuffer, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
SAME(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(kThreadIdSystem, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);

AT(CallbackData, site, CUpti_CallbackData, callbackSite);
AT(CallbackData, function_name, CUpti_CallbackData, functionName);
AT(CallbackData, parameters, CUpti_CallbackData, functionParams);
AT(CallbackData, return_value, CUpti_CallbackData, functionReturnValue);
AT(CallbackData, symbol_name, CUpti_CallbackData, symbolName);
AT(CallbackData, context, CUpti_CallbackData, context);
AT(CallbackData, context_uid, CUpti_CallbackData, contextUid);
AT(CallbackData, correlation_data, CUpti_CallbackData, correlationData);
AT(CallbackData, correlation_id, CUpti_CallbackData, correlationId);
static_assert(sizeof(CallbackData) == sizeof(CUpti_CallbackData));
AT(ResourceData, context, CUpti_ResourceData, context);
AT(ResourceData, stream, CUpti_ResourceData, resourceHandle);
AT(ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
AT(GraphExecUpdateParameters, graph_exec, cuGraphExecUpdate_params, hGraphExec);
AT(GraphExecUpdateParameters, graph, cuGraphExecUpdate_params, hGraph);
#if CUDA_VERSION >= 12000
AT(GraphExecUpdateParameters, graph_exec, cuGraphExecUpdate_v2_params, hGraphExec);
AT(GraphExecUpdateParameters, graph, cuGraphExecUpdate_v2_params, hGraph);
#endif
AT(GraphData, graph, CUpti_GraphData, graph);
AT(GraphData, original_graph, CUpti_GraphData, originalGraph);
AT(GraphData, node, CUpti_GraphData, node);
AT(GraphData, original_node, CUpti_GraphData, originalNode);
AT(GraphData, node_type, CUpti_GraphData, nodeType);
AT(GraphData, dependency, CUpti_GraphData, dependency);
AT(GraphData, graph_exec, CUpti_GraphData, graphExec);

AT(ModuleData, module_id, CUpti_ModuleResourceData, moduleId);
AT(ModuleData, cubin_bytes, CUpti_ModuleResourceData, cubinSize);
AT(ModuleData, cubin, CUpti_ModuleResourceData, pCubin);

AT(StallCount, reason, CUpti_PCSamplingStallReason, pcSamplingStallReasonIndex);
AT(StallCount, samples, CUpti_PCSamplingStallReason, samples);
static_assert(sizeof(StallCount) == sizeof(CUpti_PCSamplingStallReason));
AT(PcSamples, cubin_crc, CUpti_PCSamplingPCData, cubinCrc);
AT(PcSamples, offset, CUpti_PCSamplingPCData, pcOffset);
AT(PcSamples, function_index, CUpti_PCSamplingPCData, functionIndex);
AT(PcSamples, function_name, CUpti_PCSamplingPCData, functionName);
AT(PcSamples, reason_count, CUpti_PCSamplingPCData, stallReasonCount);
AT(PcSamples, reasons, CUpti_PCSamplingPCData, stallReason);
AT(SamplingData, capacity, CUpti_PCSamplingData, collectNumPcs);
AT(SamplingData, samples, CUpti_PCSamplingData, totalSamples);
AT(SamplingData, dropped, CUpti_PCSamplingData, droppedSamples);
AT(SamplingData, count, CUpti_PCSamplingData, totalNumPcs);
AT(SamplingData, left, CUpti_PCSamplingData, remainingNumPcs);
AT(SamplingData, range, CUpti_PCSamplingData, rangeId);
AT(SamplingData, instructions, CUpti_PCSamplingData, pPcData);
SAME(kSamplingPeriod, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD);
SAME(kSamplingReasons, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON);
SAME(kSamplingScratchBytes, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE);
SAME(kSamplingBufferBytes, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE);
SAME(kSamplingMode, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE);
SAME(kSamplingDataBuffer, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);
SAME(kSamplingModeContinuous, CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS);
AT(SamplingSetting, attribute, CUpti_PCSamplingConfigurationInfo, attributeType);
AT(SamplingSetting, status, CUpti_PCSamplingConfigurationInfo, attributeStatus);
AT(SamplingSetting, words, CUpti_PCSamplingConfigurationInfo, attributeData);
static_assert(sizeof(SamplingSetting) == sizeof(CUpti_PCSamplingConfigurationInfo));
static_assert(sizeof(SamplingSettings) == CUpti_PCSamplingConfigurationInfoParamsSize);
AT(SamplingSettings, context, CUpti_PCSamplingConfigurationInfoParams, ctx);
AT(SamplingSettings, count, CUpti_PCSamplingConfigurationInfoParams, numAttributes);
AT(SamplingSettings, settings, CUpti_PCSamplingConfigurationInfoParams,
   pPCSamplingConfigurationInfo);
static_assert(sizeof(SamplingParameters) == CUpti_PCSamplingEnableParamsSize);
AT(SamplingParameters, context, CUpti_PCSamplingEnableParams, ctx);
AT(SamplingParameters, context, CUpti_PCSamplingDisableParams, ctx);
static_assert(sizeof(SamplingFetch) == CUpti_PCSamplingGetDataParamsSize);
AT(SamplingFetch, data, CUpti_PCSamplingGetDataParams, pcSamplingData);
static_assert(sizeof(StallReasonCount) == CUpti_PCSamplingGetNumStallReasonsParamsSize);
AT(StallReasonCount, count, CUpti_PCSamplingGetNumStallReasonsParams, numStallReasons);
SAME(kStallReasonNameBytes, CUPTI_STALL_REASON_STRING_SIZE);
static_assert(sizeof(StallReasonNames) == CUpti_PCSamplingGetStallReasonsParamsSize);
AT(StallReasonNames, count, CUpti_PCSamplingGetStallReasonsParams, numStallReasons);
AT(StallReasonNames, indices, CUpti_PCSamplingGetStallReasonsParams, stallReasonIndex);
AT(StallReasonNames, names, CUpti_PCSamplingGetStallReasonsParams, stallReasons);
static_assert(sizeof(CubinCrc) == CUpti_GetCubinCrcParamsSize);
AT(CubinCrc, cubin_bytes, CUpti_GetCubinCrcParams, cubinSize);
AT(CubinCrc, cubin, CUpti_GetCubinCrcParams, cubin);
AT(CubinCrc, crc, CUpti_GetCubinCrcParams, cubinCrc);

#if CUPTI_API_VERSION >= 130000
AT(SamplingData, other_samples, CUpti_PCSamplingData, nonUsrKernelsTotalSamples);
AT(SamplingData, buffer_is_full, CUpti_PCSamplingData, hardwareBufferFull);
static_assert(sizeof(PcSamples) == sizeof(CUpti_PCSamplingPCData));
static_assert(sizeof(SamplingData) == sizeof(CUpti_PCSamplingData));
SAME(kAttributePerThreadBuffer, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
SAME(kMaxSubscriberName, CUPTI_SUBSCRIBER_NAME_MAX_LEN);
SAME(kMinPreviousName, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
AT(SubscriberParameters, struct_size, CUpti_SubscriberParams, structSize);
AT(SubscriberParameters, name, CUpti_SubscriberParams, subscriberName);
AT(SubscriberParameters, previous_name, CUpti_SubscriberParams, oldSubscriberName);
AT(SubscriberParameters, previous_name_size, CUpti_SubscriberParams, oldSubscriberSize);
static_assert(sizeof(SubscriberParameters) == CUpti_SubscriberParams_STRUCT_SIZE);
#endif

// Function pointers: the number of parameters, and each of the same size and kind.
template <typename Ours, typename Theirs>
constexpr bool kSameParameter =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;
template <typename Ours, typename Theirs>
constexpr bool kSameFunction = false;
template <typename OurReturn, typename... Ours, typename TheirReturn, typename... Theirs>
constexpr bool kSameFunction<OurReturn (*)(Ours...), TheirReturn (*)(Theirs...)> =
    std::is_void_v<OurReturn> == std::is_void_v<TheirReturn> &&
    (... && kSameParameter<Ours, Theirs>);

#define SAME_FUNCTION(member, theirs) \
  static_assert(kSameFunction<decltype(Functions::member), decltype(&theirs)>, #theirs)
SAME_FUNCTION(get_version, cuptiGetVersion);
SAME_FUNCTION(get_result_string, cuptiGetResultString);
SAME_FUNCTION(get_timestamp, cuptiGetTimestamp);
SAME_FUNCTION(subscribe, cuptiSubscribe);
SAME_FUNCTION(unsubscribe, cuptiUnsubscribe);
SAME_FUNCTION(enable_callback, cuptiEnableCallback);
SAME_FUNCTION(get_callback_name, cuptiGetCallbackName);
SAME_FUNCTION(set_thread_id_type, cuptiSetThreadIdType);
SAME_FUNCTION(set_attribute, cuptiActivitySetAttribute);
SAME_FUNCTION(register_callbacks, cuptiActivityRegisterCallbacks);
SAME_FUNCTION(enable_kind, cuptiActivityEnable);
SAME_FUNCTION(disable_kind, cuptiActivityDisable);
SAME_FUNCTION(flush_all, cuptiActivityFlushAll);
SAME_FUNCTION(get_next_record, cuptiActivityGetNextRecord);
SAME_FUNCTION(get_context_id, cuptiGetContextId);
SAME_FUNCTION(get_stream_id, cuptiGetStreamIdEx);
SAME_FUNCTION(get_dropped, cuptiActivityGetNumDroppedRecords);
SAME_FUNCTION(get_device_id, cuptiGetDeviceId);
SAME_FUNCTION(enable_sampling, cuptiPCSamplingEnable);
SAME_FUNCTION(disable_sampling, cuptiPCSamplingDisable);
SAME_FUNCTION(configure_sampling, cuptiPCSamplingSetConfigurationAttribute);
SAME_FUNCTION(get_sampling_settings, cuptiPCSamplingGetConfigurationAttribute);
SAME_FUNCTION(count_stall_reasons, cuptiPCSamplingGetNumStallReasons);
SAME_FUNCTION(get_stall_reasons, cuptiPCSamplingGetStallReasons);
SAME_FUNCTION(get_samples, cuptiPCSamplingGetData);
SAME_FUNCTION(get_cubin_crc, cuptiGetCubinCrc);
#if CUPTI_API_VERSION >= 130000
SAME_FUNCTION(subscribe_v2, cuptiSubscribe_v2);
#endif
static_assert(kSameFunction<Callback, CUpti_CallbackFunc>);
static_assert(kSameFunction<BufferRequested, CUpti_BuffersCallbackRequestFunc>);
static_assert(kSameFunction<BufferCompleted, CUpti_BuffersCallbackCompleteFunc>);

}  // namespace
}  // namespace xpu::cupti
