// Asserts pm_abi.h against the headers of a toolkit: sizes, offsets, values. Compiled where one is
// found (XPU_CUDA_TOOLKIT) that has PM sampling; produces no code.
#include <cstddef>

#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_result.h>
#include <cupti_target.h>

#include "cupti_inject/pm_abi.h"

namespace xpu::pm {
namespace {

#define VALUE(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))
#define SIZE(ours, theirs) static_assert(ours{}.params.size == theirs##_STRUCT_SIZE)
#define AT(ours, member, theirs, field)                              \
  static_assert(offsetof(ours, member) == offsetof(theirs, field) && \
                sizeof(ours::member) == sizeof(theirs::field))

VALUE(kSuccess, CUPTI_SUCCESS);
VALUE(kErrorInvalidContext, CUPTI_ERROR_INVALID_CONTEXT);
VALUE(kErrorNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
VALUE(kErrorInvalidOperation, CUPTI_ERROR_INVALID_OPERATION);
VALUE(kErrorOutOfMemory, CUPTI_ERROR_OUT_OF_MEMORY);
VALUE(kErrorHardwareBusy, CUPTI_ERROR_HARDWARE_BUSY);
VALUE(kErrorInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
VALUE(kProfilerPmSampling, CUPTI_PROFILER_TYPE_PM_SAMPLING);
VALUE(kTriggerTimeInterval, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
VALUE(kTriggerSysclk, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL);
VALUE(kKeepOldest, CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST);
VALUE(kStoppedDataFull, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);

SIZE(Initialize, CUpti_Profiler_Initialize_Params);
SIZE(GetChipName, CUpti_Device_GetChipName_Params);
AT(GetChipName, device, CUpti_Device_GetChipName_Params, deviceIndex);
AT(GetChipName, chip, CUpti_Device_GetChipName_Params, pChipName);
SIZE(GetCounterAvailability, CUpti_PmSampling_GetCounterAvailability_Params);
AT(GetCounterAvailability, device, CUpti_PmSampling_GetCounterAvailability_Params, deviceIndex);
AT(GetCounterAvailability, image_bytes, CUpti_PmSampling_GetCounterAvailability_Params,
   counterAvailabilityImageSize);
AT(GetCounterAvailability, image, CUpti_PmSampling_GetCounterAvailability_Params,
   pCounterAvailabilityImage);

SIZE(HostInitialize, CUpti_Profiler_Host_Initialize_Params);
AT(HostInitialize, type, CUpti_Profiler_Host_Initialize_Params, profilerType);
AT(HostInitialize, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
AT(HostInitialize, availability, CUpti_Profiler_Host_Initialize_Params, pCounterAvailabilityImage);
AT(HostInitialize, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);
SIZE(HostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params);
SIZE(HostBaseMetrics, CUpti_Profiler_Host_GetBaseMetrics_Params);
AT(HostBaseMetrics, type, CUpti_Profiler_Host_GetBaseMetrics_Params, metricType);
AT(HostBaseMetrics, names, CUpti_Profiler_Host_GetBaseMetrics_Params, ppMetricNames);
AT(HostBaseMetrics, count, CUpti_Profiler_Host_GetBaseMetrics_Params, numMetrics);
VALUE(kMetricTypes, CUPTI_METRIC_TYPE__COUNT);
SIZE(HostAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params);
AT(HostAddMetrics, names, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
AT(HostAddMetrics, count, CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics);
SIZE(HostConfigSize, CUpti_Profiler_Host_GetConfigImageSize_Params);
AT(HostConfigSize, bytes, CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize);
SIZE(HostConfigImage, CUpti_Profiler_Host_GetConfigImage_Params);
AT(HostConfigImage, bytes, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
AT(HostConfigImage, image, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);
SIZE(HostPasses, CUpti_Profiler_Host_GetNumOfPasses_Params);
AT(HostPasses, image, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage);
AT(HostPasses, passes, CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses);
SIZE(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
AT(HostEvaluate, data, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage);
AT(HostEvaluate, index, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
AT(HostEvaluate, names, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
AT(HostEvaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);

SIZE(Enable, CUpti_PmSampling_Enable_Params);
AT(Enable, device, CUpti_PmSampling_Enable_Params, deviceIndex);
AT(Enable, sampling, CUpti_PmSampling_Enable_Params, pPmSamplingObject);
SIZE(OfSampling, CUpti_PmSampling_Disable_Params);
SIZE(OfSampling, CUpti_PmSampling_Start_Params);
SIZE(OfSampling, CUpti_PmSampling_Stop_Params);
AT(OfSampling, sampling, CUpti_PmSampling_Start_Params, pPmSamplingObject);
SIZE(SetConfig, CUpti_PmSampling_SetConfig_Params);
AT(SetConfig, config_bytes, CUpti_PmSampling_SetConfig_Params, configSize);
AT(SetConfig, config, CUpti_PmSampling_SetConfig_Params, pConfig);
AT(SetConfig, hardware_buffer_bytes, CUpti_PmSampling_SetConfig_Params, hardwareBufferSize);
AT(SetConfig, interval, CUpti_PmSampling_SetConfig_Params, samplingInterval);
AT(SetConfig, trigger, CUpti_PmSampling_SetConfig_Params, triggerMode);
AT(SetConfig, append, CUpti_PmSampling_SetConfig_Params, hwBufferAppendMode);
SIZE(DataSize, CUpti_PmSampling_GetCounterDataSize_Params);
AT(DataSize, names, CUpti_PmSampling_GetCounterDataSize_Params, pMetricNames);
AT(DataSize, most_samples, CUpti_PmSampling_GetCounterDataSize_Params, maxSamples);
AT(DataSize, bytes, CUpti_PmSampling_GetCounterDataSize_Params, counterDataSize);
SIZE(DataInitialize, CUpti_PmSampling_CounterDataImage_Initialize_Params);
AT(DataInitialize, data, CUpti_PmSampling_CounterDataImage_Initialize_Params, pCounterData);
SIZE(Decode, CUpti_PmSampling_DecodeData_Params);
AT(Decode, data, CUpti_PmSampling_DecodeData_Params, pCounterDataImage);
AT(Decode, stopped, CUpti_PmSampling_DecodeData_Params, decodeStopReason);
AT(Decode, overflow, CUpti_PmSampling_DecodeData_Params, overflow);
SIZE(DataInfo, CUpti_PmSampling_GetCounterDataInfo_Params);
AT(DataInfo, total, CUpti_PmSampling_GetCounterDataInfo_Params, numTotalSamples);
AT(DataInfo, completed, CUpti_PmSampling_GetCounterDataInfo_Params, numCompletedSamples);
SIZE(SampleInfo, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
AT(SampleInfo, index, CUpti_PmSampling_CounterData_GetSampleInfo_Params, sampleIndex);
AT(SampleInfo, start_ns, CUpti_PmSampling_CounterData_GetSampleInfo_Params, startTimestamp);
AT(SampleInfo, end_ns, CUpti_PmSampling_CounterData_GetSampleInfo_Params, endTimestamp);

}  // namespace
}  // namespace xpu::pm
