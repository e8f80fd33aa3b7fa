// Kernel launches and host functions. Compiled twice: default_stream.h.
#include "calls.h"
#include "default_stream.h"
#include "kernel.h"

using namespace xpu::fake_cuda;

namespace {

struct LaunchKernelParams {  // cuLaunchKernel_params of generated_cuda_meta.h
  CUfunction function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  CUstream stream;
  void** params;
  void** extra;
};

struct LaunchKernelExParams {
  const CUlaunchConfig* config;
  CUfunction function;
  void** params;
  void** extra;
};

struct LaunchHostFuncParams {
  CUstream stream;
  CUhostFn function;
  void* user_data;
};

const char* NameOf(CUfunction function) {
  return function == nullptr ? nullptr : function->name.c_str();
}

CUresult Launch(const LaunchKernelParams& call) {
  return LaunchKernel(
      call.function,
      LaunchConfig(call.grid, call.block, call.shared_bytes, XPU_STREAM(call.stream)), call.params);
}

}  // namespace

extern "C" {

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void** params, void** extra) {
  const LaunchKernelParams call{
      function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, params,
      extra};
  DriverScope scope(XPU_PTSZ(307, 442, "cuLaunchKernel"), &call, NameOf(function));
  return scope.Return(Launch(call));
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                   void** params) {
  const LaunchKernelParams call{
      function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, params,
      nullptr};
  DriverScope scope(XPU_PTSZ(477, 478, "cuLaunchCooperativeKernel"), &call, NameOf(function));
  return scope.Return(Launch(call));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                          void** extra) {
  const LaunchKernelExParams call{config, function, params, extra};
  DriverScope scope(XPU_PTSZ(652, 653, "cuLaunchKernelEx"), &call, NameOf(function));
  CUlaunchConfig resolved = *config;
  resolved.hStream = XPU_STREAM(config->hStream);
  return scope.Return(LaunchKernel(function, resolved, params));
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data) {
  const LaunchHostFuncParams call{stream, function, user_data};
  DriverScope scope(XPU_PTSZ(527, 528, "cuLaunchHostFunc"), &call);
  return scope.Return(LaunchHostFunction(XPU_STREAM(stream), function, user_data));
}

#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* list, unsigned int count,
                                              unsigned int /*flags*/) {
  DriverScope scope(480, "cuLaunchCooperativeKernelMultiDevice");
  for (unsigned i = 0; i < count; ++i) {
    const CUDA_LAUNCH_PARAMS& one = list[i];
    const CUlaunchConfig config = LaunchConfig({one.gridDimX, one.gridDimY, one.gridDimZ},
                                               {one.blockDimX, one.blockDimY, one.blockDimZ},
                                               one.sharedMemBytes, one.hStream);
    const CUresult result = LaunchKernel(one.function, config, one.kernelParams);
    if (result != CUDA_SUCCESS) return scope.Return(result);
  }
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  DriverScope scope(83, "cuFuncSetBlockShape");
  const int shape[3] = {x, y, z};
  for (int i = 0; i < 3; ++i) function->block[i] = static_cast<unsigned>(shape[i]);
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuParamSetSize(CUfunction /*function*/, unsigned int /*bytes*/) {
  DriverScope scope(110, "cuParamSetSize");
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuLaunch(CUfunction function) {
  DriverScope scope(115, "cuLaunch", nullptr, NameOf(function));
  return scope.Return(
      LaunchKernel(function, LaunchConfig({1, 1, 1}, function->block, 0, nullptr), nullptr));
}

CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  DriverScope scope(116, "cuLaunchGrid", nullptr, NameOf(function));
  const unsigned grid[3] = {static_cast<unsigned>(width), static_cast<unsigned>(height), 1};
  return scope.Return(
      LaunchKernel(function, LaunchConfig(grid, function->block, 0, nullptr), nullptr));
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  DriverScope scope(117, "cuLaunchGridAsync", nullptr, NameOf(function));
  const unsigned grid[3] = {static_cast<unsigned>(width), static_cast<unsigned>(height), 1};
  return scope.Return(
      LaunchKernel(function, LaunchConfig(grid, function->block, 0, stream), nullptr));
}

#endif

}  // extern "C"
