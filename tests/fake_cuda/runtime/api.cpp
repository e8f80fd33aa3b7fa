// The runtime functions. Callback ids are those of CUDA 13.0 (the current versions:
// cudaGraphInstantiate is 443, not 310; cudaEventElapsedTime 486, not 139), as the captures show
// them.
#include <dlfcn.h>

#include "runtime.h"

using namespace xpu::fake_cuda;

namespace {

CUdeviceptr DevicePointer(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

CUresult CopyBlocking(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return cuMemcpyHtoD(DevicePointer(to), from, bytes);
    case cudaMemcpyDeviceToHost:
      return cuMemcpyDtoH(to, DevicePointer(from), bytes);
    case cudaMemcpyDeviceToDevice:
      return cuMemcpyDtoD(DevicePointer(to), DevicePointer(from), bytes);
    default:
      return CUDA_ERROR_INVALID_VALUE;  // no workload does it
  }
}

CUresult CopyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                   cudaStream_t stream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return cuMemcpyHtoDAsync(DevicePointer(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return cuMemcpyDtoHAsync(to, DevicePointer(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return cuMemcpyDtoDAsync(DevicePointer(to), DevicePointer(from), bytes, stream);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

struct LaunchKernelParams {  // cudaLaunchKernel_v7000_params
  const void* function;
  dim3 grid;
  dim3 block;
  void** args;
  size_t shared_bytes;
  cudaStream_t stream;
};

// The name that a record will have; the pointer differs from the driver callback's, as in the
// captures.
const char* SymbolOf(const void* function) {
  Dl_info info;
  return dladdr(function, &info) == 0 ? nullptr : info.dli_sname;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  const char* name = nullptr;
  cuGetErrorName(static_cast<CUresult>(error), &name);
  return name;
}

const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

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

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  RuntimeScope scope(31, "cudaMemcpy");
  return scope.Return(CopyBlocking(to, from, bytes, kind));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  RuntimeScope scope(41, "cudaMemcpyAsync");
  return scope.Return(CopyAsync(to, from, bytes, kind, stream));
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  RuntimeScope scope(51, "cudaMemsetAsync");
  return scope.Return(
      cuMemsetD8Async(DevicePointer(to), static_cast<unsigned char>(value), bytes, stream));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  RuntimeScope scope(198, "cudaStreamCreateWithFlags");
  return scope.Return(cuStreamCreate(stream, flags));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  RuntimeScope scope(201, "cudaStreamDestroy");
  return scope.Return(cuStreamDestroy(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  RuntimeScope scope(131, "cudaStreamSynchronize");
  return scope.Return(cuStreamSynchronize(stream));
}

cudaError_t cudaDeviceSynchronize() {
  RuntimeScope scope(165, "cudaDeviceSynchronize");
  return scope.Return(cuCtxSynchronize());
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  RuntimeScope scope(315, "cudaStreamBeginCapture");
  return scope.Return(cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(mode)));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  RuntimeScope scope(319, "cudaStreamEndCapture");
  return scope.Return(cuStreamEndCapture(stream, graph));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  RuntimeScope scope(133, "cudaEventCreate");
  return scope.Return(cuEventCreate(event, 0));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  RuntimeScope scope(135, "cudaEventRecord");
  return scope.Return(cuEventRecord(event, stream));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  RuntimeScope scope(137, "cudaEventSynchronize");
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

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args,
                             size_t shared_bytes, cudaStream_t stream) {
  CUfunction kernel = FindKernel(function);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  const LaunchKernelParams params{function, grid, block, args, shared_bytes, stream};
  RuntimeScope scope(211, "cudaLaunchKernel", &params, SymbolOf(function));
  return scope.Return(cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     static_cast<unsigned>(shared_bytes), stream, args, nullptr));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  RuntimeScope scope(443, "cudaGraphInstantiate");
  return scope.Return(cuGraphInstantiateWithFlags(exec, graph, flags));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  RuntimeScope scope(311, "cudaGraphLaunch");
  return scope.Return(cuGraphLaunch(exec, stream));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  RuntimeScope scope(314, "cudaGraphDestroy");
  return scope.Return(cuGraphDestroy(graph));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  RuntimeScope scope(313, "cudaGraphExecDestroy");
  return scope.Return(cuGraphExecDestroy(exec));
}

}  // extern "C"
