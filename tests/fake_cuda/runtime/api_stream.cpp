// Launches and what else is done to a stream. Compiled twice: default_stream.h.
#include <array>

#include <dlfcn.h>

#include "../driver/default_stream.h"
#include "runtime.h"

using namespace xpu::fake_cuda;

namespace {

struct LaunchKernelParams {  // cudaLaunchKernel_v7000_params
  const void* function;
  dim3 grid;
  dim3 block;
  void** args;
  size_t shared_bytes;
  cudaStream_t stream;
};

struct LaunchKernelExCParams {
  const cudaLaunchConfig_t* config;
  const void* function;
  void** args;
};

// The name that a record will have; the pointer differs from the driver callback's, as in the
// captures.
const char* SymbolOf(const void* function) {
  Dl_info info;
  return dladdr(function, &info) == 0 ? nullptr : info.dli_sname;
}

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args,
                             size_t shared_bytes, cudaStream_t stream) {
  CUfunction kernel = FindKernel(function);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  const LaunchKernelParams params{function, grid, block, args, shared_bytes, stream};
  RuntimeScope scope(XPU_PTSZ(211, 214, "cudaLaunchKernel"), &params, SymbolOf(function));
  return scope.Return(cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     static_cast<unsigned>(shared_bytes), stream, args, nullptr));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** args) {
  CUfunction kernel = FindKernel(function);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  const LaunchKernelExCParams params{config, function, args};
  RuntimeScope scope(XPU_PTSZ(430, 431, "cudaLaunchKernelExC"), &params, SymbolOf(function));
  CUlaunchConfig launch{};
  launch.gridDimX = config->gridDim.x;
  launch.gridDimY = config->gridDim.y;
  launch.gridDimZ = config->gridDim.z;
  launch.blockDimX = config->blockDim.x;
  launch.blockDimY = config->blockDim.y;
  launch.blockDimZ = config->blockDim.z;
  launch.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  launch.hStream = config->stream;
  return scope.Return(cuLaunchKernelEx(&launch, kernel, args, nullptr));
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** args,
                                        size_t shared_bytes, cudaStream_t stream) {
  CUfunction kernel = FindKernel(function);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  const LaunchKernelParams params{function, grid, block, args, shared_bytes, stream};
  RuntimeScope scope(XPU_PTSZ(269, 270, "cudaLaunchCooperativeKernel"), &params,
                     SymbolOf(function));
  return scope.Return(cuLaunchCooperativeKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y,
                                                block.z, static_cast<unsigned>(shared_bytes),
                                                stream, args));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  RuntimeScope scope(XPU_PTSZ(284, 285, "cudaLaunchHostFunc"));
  return scope.Return(cuLaunchHostFunc(stream, function, user_data));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(311, 312, "cudaGraphLaunch"));
  return scope.Return(cuGraphLaunch(exec, stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::array<const void*, 1> params{stream};  // as in cudaStreamSynchronize_v3020_params
  RuntimeScope scope(XPU_PTSZ(131, 239, "cudaStreamSynchronize"), params.data());
  return scope.Return(cuStreamSynchronize(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(132, 240, "cudaStreamQuery"));
  return scope.Return(cuStreamQuery(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  const std::array<const void*, 3> params{stream, event};  // as in cudaStreamWaitEvent_v3020_params
  RuntimeScope scope(XPU_PTSZ(147, 247, "cudaStreamWaitEvent"), params.data());
  return scope.Return(cuStreamWaitEvent(stream, event, flags));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(135, 242, "cudaEventRecord"));
  return scope.Return(cuEventRecord(event, stream));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  RuntimeScope scope(XPU_PTSZ(315, 316, "cudaStreamBeginCapture"));
  return scope.Return(cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(mode)));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  RuntimeScope scope(XPU_PTSZ(319, 320, "cudaStreamEndCapture"));
  return scope.Return(cuStreamEndCapture(stream, graph));
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(373, 374, "cudaMallocAsync"));
  return scope.Return(cuMemAllocAsync(reinterpret_cast<CUdeviceptr*>(pointer), bytes, stream));
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(375, 376, "cudaFreeAsync"));
  return scope.Return(cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(pointer), stream));
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(449, 450, "cudaMemPrefetchAsync"));
  return scope.Return(cuMemPrefetchAsync(
      reinterpret_cast<CUdeviceptr>(pointer), bytes,
      {static_cast<CUmemLocationType>(location.type), location.id}, flags, stream));
}

}  // extern "C"
