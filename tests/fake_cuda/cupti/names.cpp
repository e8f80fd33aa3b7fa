// What cuptiGetCallbackName says: names of the driver API as they are, of the runtime API with the
// version in which the function got its present form.
#include "subscriber.h"

namespace xpu::fake_cupti {
namespace {

struct Name {
  uint32_t callback_id;
  const char* name;
};

constexpr Name kDriverNames[] = {
    {1, "cuInit"},
    {2, "cuDriverGetVersion"},
    {3, "cuDeviceGet"},
    {4, "cuDeviceGetCount"},
    {5, "cuDeviceGetName"},
    {9, "cuDeviceGetAttribute"},
    {17, "cuCtxSynchronize"},
    {19, "cuModuleLoadData"},
    {22, "cuModuleUnload"},
    {23, "cuModuleGetFunction"},
    {38, "cuMemFreeHost"},
    {39, "cuMemHostAlloc"},
    {115, "cuLaunch"},
    {116, "cuLaunchGrid"},
    {117, "cuLaunchGridAsync"},
    {118, "cuEventCreate"},
    {119, "cuEventRecord"},
    {121, "cuEventSynchronize"},
    {124, "cuStreamCreate"},
    {126, "cuStreamSynchronize"},
    {216, "cuMemsetD8Async"},
    {243, "cuMemAlloc_v2"},
    {245, "cuMemFree_v2"},
    {259, "cuDeviceTotalMem_v2"},
    {276, "cuMemcpyHtoD_v2"},
    {277, "cuMemcpyHtoDAsync_v2"},
    {278, "cuMemcpyDtoH_v2"},
    {279, "cuMemcpyDtoHAsync_v2"},
    {280, "cuMemcpyDtoD_v2"},
    {281, "cuMemcpyDtoDAsync_v2"},
    {296, "cuCtxGetApiVersion"},
    {303, "cuCtxSetCurrent"},
    {304, "cuCtxGetCurrent"},
    {307, "cuLaunchKernel"},
    {325, "cuEventDestroy_v2"},
    {326, "cuStreamDestroy_v2"},
    {386, "cuDevicePrimaryCtxRetain"},
    {388, "cuDevicePrimaryCtxGetState"},
    {442, "cuLaunchKernel_ptsz"},
    {477, "cuLaunchCooperativeKernel"},
    {478, "cuLaunchCooperativeKernel_ptsz"},
    {482, "cuDeviceGetUuid"},
    {497, "cuStreamEndCapture"},
    {514, "cuGraphLaunch"},
    {515, "cuGraphLaunch_ptsz"},
    {516, "cuGraphExecDestroy"},
    {517, "cuGraphDestroy"},
    {539, "cuStreamBeginCapture_v2"},
    {544, "cuDevicePrimaryCtxRelease_v2"},
    {643, "cuGraphInstantiateWithFlags"},
    {652, "cuLaunchKernelEx"},
    {653, "cuLaunchKernelEx_ptsz"},
    {673, "cuModuleGetLoadingMode"},
    {678, "cuLibraryLoadData"},
    {681, "cuLibraryGetKernel"},
    {780, "cuEventElapsedTime_v2"},
    {795, "cuCtxGetDevice_v2"},
};

constexpr Name kRuntimeNames[] = {
    {20, "cudaMalloc_v3020"},
    {22, "cudaFree_v3020"},
    {25, "cudaMallocHost_v3020"},
    {26, "cudaFreeHost_v3020"},
    {31, "cudaMemcpy_v3020"},
    {41, "cudaMemcpyAsync_v3020"},
    {51, "cudaMemsetAsync_v3020"},
    {131, "cudaStreamSynchronize_v3020"},
    {133, "cudaEventCreate_v3020"},
    {135, "cudaEventRecord_v3020"},
    {136, "cudaEventDestroy_v3020"},
    {137, "cudaEventSynchronize_v3020"},
    {165, "cudaDeviceSynchronize_v3020"},
    {198, "cudaStreamCreateWithFlags_v5000"},
    {201, "cudaStreamDestroy_v5050"},
    {211, "cudaLaunchKernel_v7000"},
    {214, "cudaLaunchKernel_ptsz_v7000"},
    {269, "cudaLaunchCooperativeKernel_v9000"},
    {311, "cudaGraphLaunch_v10000"},
    {313, "cudaGraphExecDestroy_v10000"},
    {314, "cudaGraphDestroy_v10000"},
    {315, "cudaStreamBeginCapture_v10000"},
    {319, "cudaStreamEndCapture_v10000"},
    {430, "cudaLaunchKernelExC_v11060"},
    {443, "cudaGraphInstantiate_v12000"},
    {486, "cudaEventElapsedTime_v12080"},
    {505, "__cudaLaunchKernel_v13000"},
};

template <size_t kCount>
const char* Find(const Name (&names)[kCount], uint32_t callback_id) {
  for (const Name& name : names) {
    if (name.callback_id == callback_id) return name.name;
  }
  return nullptr;
}

}  // namespace

const char* CallbackName(CUpti_CallbackDomain domain, uint32_t callback_id) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) return Find(kDriverNames, callback_id);
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) return Find(kRuntimeNames, callback_id);
  return nullptr;
}

}  // namespace xpu::fake_cupti
