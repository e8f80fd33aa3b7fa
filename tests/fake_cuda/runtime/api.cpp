// The runtime functions without a stream; those with one are in the files that are compiled twice.
// Callback ids are those of CUDA 13.0 (the current versions:
// cudaGraphInstantiate is 443, not 310; cudaEventElapsedTime 486, not 139), as the captures show
// them.
#include <array>

#include <cuda_profiler_api.h>

#include "copy_params.h"
#include "runtime.h"

using namespace xpu::fake_cuda;

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  const char* name = nullptr;
  cuGetErrorName(static_cast<CUresult>(error), &name);
  return name;
}

const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

cudaError_t cudaGetLastError() {
  RuntimeScope scope(10, "cudaGetLastError");
  return scope.Return(xpu_fake_driver()->fault());
}

cudaError_t cudaPeekAtLastError() {
  RuntimeScope scope(11, "cudaPeekAtLastError");
  return scope.Return(xpu_fake_driver()->fault());
}

cudaError_t cudaGetDeviceCount(int* count) {
  RuntimeScope scope(NoContext{}, 3, "cudaGetDeviceCount");
  return scope.Return(cuDeviceGetCount(count));
}

cudaError_t cudaSetDevice(int device) {
  RuntimeScope scope(NoContext{}, 16, "cudaSetDevice");
  if (device < 0 || static_cast<uint32_t>(device) >= xpu_fake_driver()->device_count()) {
    return scope.Return(CUDA_ERROR_INVALID_DEVICE);
  }
  UseDevice(device);
  return scope.Return(CUDA_SUCCESS);
}

cudaError_t cudaGetDevice(int* device) {
  RuntimeScope scope(NoContext{}, 17, "cudaGetDevice");
  *device = CurrentDevice();
  return scope.Return(CUDA_SUCCESS);
}

cudaError_t cudaDeviceReset() {
  RuntimeScope scope(164, "cudaDeviceReset");
  const CUresult result = cuDevicePrimaryCtxReset(CurrentDevice());
  ForgetContext();
  return scope.Return(result);
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  RuntimeScope scope(NoContext{}, 154, "cudaDeviceCanAccessPeer");
  return scope.Return(cuDeviceCanAccessPeer(can, device, peer));
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  RuntimeScope scope(155, "cudaDeviceEnablePeerAccess");
  return scope.Return(cuCtxEnablePeerAccess(xpu_fake_driver()->primary_context(peer), flags));
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  *function = FindKernel(symbol);
  RuntimeScope scope(336, "cudaGetFuncBySymbol");
  return scope.Return(*function == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  RuntimeScope scope(206, "cudaMallocManaged");
  return scope.Return(cuMemAllocManaged(reinterpret_cast<CUdeviceptr*>(pointer), bytes, flags));
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* /*format*/,
                            size_t width, size_t height, unsigned int /*flags*/) {
  RuntimeScope scope(23, "cudaMallocArray");
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{width, height, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  return scope.Return(cuArray3DCreate(reinterpret_cast<CUarray*>(array), &descriptor));
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  RuntimeScope scope(24, "cudaFreeArray");
  return scope.Return(cuArrayDestroy(reinterpret_cast<CUarray>(array)));
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  RuntimeScope scope(20, "cudaMalloc");
  CUdeviceptr memory = 0;
  const CUresult result = cuMemAlloc(&memory, bytes);
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(memory);
  return scope.Return(result);
}

cudaError_t cudaFree(void* pointer) {
  RuntimeScope scope(22, "cudaFree");
  return scope.Return(pointer == nullptr ? CUDA_SUCCESS : cuMemFree(DevicePointer(pointer)));
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  RuntimeScope scope(25, "cudaMallocHost");
  return scope.Return(cuMemHostAlloc(pointer, bytes, 0));
}

cudaError_t cudaFreeHost(void* pointer) {
  RuntimeScope scope(26, "cudaFreeHost");
  return scope.Return(cuMemFreeHost(pointer));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  RuntimeScope scope(198, "cudaStreamCreateWithFlags");
  return scope.Return(cuStreamCreate(stream, flags));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  RuntimeScope scope(201, "cudaStreamDestroy");
  return scope.Return(cuStreamDestroy(stream));
}

cudaError_t cudaProfilerStart() {
  RuntimeScope scope(171, "cudaProfilerStart");
  return scope.Return(cuProfilerStart());
}

cudaError_t cudaProfilerStop() {
  RuntimeScope scope(172, "cudaProfilerStop");
  return scope.Return(cuProfilerStop());
}

cudaError_t cudaDeviceSynchronize() {
  RuntimeScope scope(165, "cudaDeviceSynchronize");
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  return scope.Return(cuCtxSynchronize_v2(context));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  RuntimeScope scope(133, "cudaEventCreate");
  return scope.Return(cuEventCreate(event, 0));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::array<const void*, 1> params{event};  // as in cudaEventSynchronize_v3020_params
  RuntimeScope scope(137, "cudaEventSynchronize", params.data());
  return scope.Return(cuEventSynchronize(event));
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  RuntimeScope scope(486, "cudaEventElapsedTime");
  return scope.Return(cuEventElapsedTime(milliseconds, start, end));
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  RuntimeScope scope(136, "cudaEventDestroy");
  return scope.Return(cuEventDestroy(event));
}

}  // extern "C"
