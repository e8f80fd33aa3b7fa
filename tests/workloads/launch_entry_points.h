// Every API function that launches something, called by one function each. Compiled twice, because
// the per-thread default stream is chosen when a source file is compiled: launch_entry_points.cu
// calls the plain functions, launch_entry_points_per_thread.cu their _ptsz twins. XPU_ENTRY_POINT
// gives the names of the second copy another ending.
#pragma once

#include <cuda.h>

#include "gpu.h"

#ifndef XPU_ENTRY_POINT
#error "XPU_ENTRY_POINT(name) says what the functions and kernels of this copy are called"
#endif

struct EntryPoint {
  const char* function;  // ours: the direct caller of `entry`
  const char* entry;     // the function that is called, without _ptsz
  const char* api;       // what CUPTI's callback calls the outermost API function, likewise
  const char* kernel;    // nullptr: the GPU runs nothing, no record is owed
  // 0, or the CUDA error of a driver that does not have this function any more.
  int (*run)(cudaStream_t stream);
};

struct EntryPoints {
  const EntryPoint* entry_points;
  size_t count;
};
EntryPoints PlainEntryPoints();
EntryPoints PerThreadEntryPoints();

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define XPU_ENTRY_POINT_NAME(name) #name "_per_thread"
#else
#define XPU_ENTRY_POINT_NAME(name) #name
#endif

// The GPU does something, and every entry point has a name of its own in the records.
#define XPU_ENTRY_POINT_KERNEL(name) \
  __global__ void XPU_ENTRY_POINT(name)() {}

XPU_ENTRY_POINT_KERNEL(cuda_launch_kernel)
XPU_ENTRY_POINT_KERNEL(cuda_launch_kernel_exc)
XPU_ENTRY_POINT_KERNEL(cuda_launch_cooperative)
XPU_ENTRY_POINT_KERNEL(cu_launch_kernel)
XPU_ENTRY_POINT_KERNEL(cu_launch_kernel_ex)
XPU_ENTRY_POINT_KERNEL(cu_launch_cooperative)
#ifdef __CUDACC__
XPU_ENTRY_POINT_KERNEL(triple_chevron)
#endif
#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
XPU_ENTRY_POINT_KERNEL(cu_launch_cooperative_multi)
XPU_ENTRY_POINT_KERNEL(cu_launch)
XPU_ENTRY_POINT_KERNEL(cu_launch_grid)
XPU_ENTRY_POINT_KERNEL(cu_launch_grid_async)
#endif

#define XPU_ENTRY_POINT_POINTER(kernel) reinterpret_cast<const void*>(&XPU_ENTRY_POINT(kernel))

namespace {

CUfunction DriverFunction(const void* kernel) {
  cudaFunction_t function = nullptr;
  XPU_CUDA(cudaGetFuncBySymbol(&function, kernel));
  return function;
}

void CUDA_CB CountHostCall(void* counter) { *static_cast<int*>(counter) += 1; }

int g_host_calls = 0;

}  // namespace

// ---- runtime API -------------------------------------------------------------------------------

XPU_FRAME int XPU_ENTRY_POINT(CudaLaunchKernel)(cudaStream_t stream) {
  void* args[] = {nullptr};
  return cudaLaunchKernel(XPU_ENTRY_POINT_POINTER(cuda_launch_kernel), dim3(1), dim3(32), args, 0,
                          stream);
}

XPU_FRAME int XPU_ENTRY_POINT(CudaLaunchKernelExC)(cudaStream_t stream) {
  void* args[] = {nullptr};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.stream = stream;
  return cudaLaunchKernelExC(&config, XPU_ENTRY_POINT_POINTER(cuda_launch_kernel_exc), args);
}

XPU_FRAME int XPU_ENTRY_POINT(CudaLaunchCooperativeKernel)(cudaStream_t stream) {
  void* args[] = {nullptr};
  return cudaLaunchCooperativeKernel(XPU_ENTRY_POINT_POINTER(cuda_launch_cooperative), dim3(1),
                                     dim3(32), args, 0, stream);
}

XPU_FRAME int XPU_ENTRY_POINT(CudaLaunchHostFunc)(cudaStream_t stream) {
  return cudaLaunchHostFunc(stream, &CountHostCall, &g_host_calls);
}

#ifdef __CUDACC__
XPU_FRAME int XPU_ENTRY_POINT(TripleChevron)(cudaStream_t stream) {
  XPU_ENTRY_POINT(triple_chevron)<<<1, 32, 0, stream>>>();
  return cudaGetLastError();
}
#endif

// ---- driver API --------------------------------------------------------------------------------

XPU_FRAME int XPU_ENTRY_POINT(CuLaunchKernel)(cudaStream_t stream) {
  return cuLaunchKernel(DriverFunction(XPU_ENTRY_POINT_POINTER(cu_launch_kernel)), 1, 1, 1, 32, 1,
                        1, 0, stream, nullptr, nullptr);
}

XPU_FRAME int XPU_ENTRY_POINT(CuLaunchKernelEx)(cudaStream_t stream) {
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  return cuLaunchKernelEx(&config, DriverFunction(XPU_ENTRY_POINT_POINTER(cu_launch_kernel_ex)),
                          nullptr, nullptr);
}

XPU_FRAME int XPU_ENTRY_POINT(CuLaunchCooperativeKernel)(cudaStream_t stream) {
  return cuLaunchCooperativeKernel(DriverFunction(XPU_ENTRY_POINT_POINTER(cu_launch_cooperative)),
                                   1, 1, 1, 32, 1, 1, 0, stream, nullptr);
}

XPU_FRAME int XPU_ENTRY_POINT(CuLaunchHostFunc)(cudaStream_t stream) {
  return cuLaunchHostFunc(stream, &CountHostCall, &g_host_calls);
}

#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
// Deprecated for ten years and more, still in the headers of CUDA 13.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

XPU_FRAME int CuLaunchCooperativeKernelMultiDevice(cudaStream_t stream) {
  CUDA_LAUNCH_PARAMS params{};
  params.function = DriverFunction(XPU_ENTRY_POINT_POINTER(cu_launch_cooperative_multi));
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = 32;
  params.blockDimY = params.blockDimZ = 1;
  params.hStream = stream;
  return cuLaunchCooperativeKernelMultiDevice(&params, 1, 0);
}

namespace {

CUfunction ShapedFunction(const void* kernel) {
  CUfunction function = DriverFunction(kernel);
  if (cuFuncSetBlockShape(function, 32, 1, 1) != CUDA_SUCCESS) return function;
  cuParamSetSize(function, 0);
  return function;
}

}  // namespace

XPU_FRAME int CuLaunch(cudaStream_t /*stream*/) {
  return cuLaunch(ShapedFunction(XPU_ENTRY_POINT_POINTER(cu_launch)));
}

XPU_FRAME int CuLaunchGrid(cudaStream_t /*stream*/) {
  return cuLaunchGrid(ShapedFunction(XPU_ENTRY_POINT_POINTER(cu_launch_grid)), 1, 1);
}

XPU_FRAME int CuLaunchGridAsync(cudaStream_t stream) {
  return cuLaunchGridAsync(ShapedFunction(XPU_ENTRY_POINT_POINTER(cu_launch_grid_async)), 1, 1,
                           stream);
}
#pragma GCC diagnostic pop
#endif

// ---- the list ----------------------------------------------------------------------------------

#define XPU_ENTRY_POINT_ROW(function, entry, api, kernel) \
  { XPU_ENTRY_POINT_NAME(function), entry, api, kernel, &XPU_ENTRY_POINT(function) }

namespace {

constexpr EntryPoint kEntryPoints[] = {
    XPU_ENTRY_POINT_ROW(CudaLaunchKernel, "cudaLaunchKernel", "cudaLaunchKernel",
                        XPU_ENTRY_POINT_NAME(cuda_launch_kernel)),
    XPU_ENTRY_POINT_ROW(CudaLaunchKernelExC, "cudaLaunchKernelExC", "cudaLaunchKernelExC",
                        XPU_ENTRY_POINT_NAME(cuda_launch_kernel_exc)),
    XPU_ENTRY_POINT_ROW(CudaLaunchCooperativeKernel, "cudaLaunchCooperativeKernel",
                        "cudaLaunchCooperativeKernel",
                        XPU_ENTRY_POINT_NAME(cuda_launch_cooperative)),
    XPU_ENTRY_POINT_ROW(CudaLaunchHostFunc, "cudaLaunchHostFunc", "cudaLaunchHostFunc", nullptr),
#ifdef __CUDACC__
    // cudart's __cudaLaunchKernel is a jump to cudaLaunchKernel and has no callback of its own.
    XPU_ENTRY_POINT_ROW(TripleChevron, "__cudaLaunchKernel", "cudaLaunchKernel",
                        XPU_ENTRY_POINT_NAME(triple_chevron)),
#endif
    XPU_ENTRY_POINT_ROW(CuLaunchKernel, "cuLaunchKernel", "cuLaunchKernel",
                        XPU_ENTRY_POINT_NAME(cu_launch_kernel)),
    XPU_ENTRY_POINT_ROW(CuLaunchKernelEx, "cuLaunchKernelEx", "cuLaunchKernelEx",
                        XPU_ENTRY_POINT_NAME(cu_launch_kernel_ex)),
    XPU_ENTRY_POINT_ROW(CuLaunchCooperativeKernel, "cuLaunchCooperativeKernel",
                        "cuLaunchCooperativeKernel", XPU_ENTRY_POINT_NAME(cu_launch_cooperative)),
    XPU_ENTRY_POINT_ROW(CuLaunchHostFunc, "cuLaunchHostFunc", "cuLaunchHostFunc", nullptr),
#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
    XPU_ENTRY_POINT_ROW(
        CuLaunchCooperativeKernelMultiDevice, "cuLaunchCooperativeKernelMultiDevice",
        "cuLaunchCooperativeKernelMultiDevice", XPU_ENTRY_POINT_NAME(cu_launch_cooperative_multi)),
    XPU_ENTRY_POINT_ROW(CuLaunch, "cuLaunch", "cuLaunch", XPU_ENTRY_POINT_NAME(cu_launch)),
    XPU_ENTRY_POINT_ROW(CuLaunchGrid, "cuLaunchGrid", "cuLaunchGrid",
                        XPU_ENTRY_POINT_NAME(cu_launch_grid)),
    XPU_ENTRY_POINT_ROW(CuLaunchGridAsync, "cuLaunchGridAsync", "cuLaunchGridAsync",
                        XPU_ENTRY_POINT_NAME(cu_launch_grid_async)),
#endif
};

}  // namespace
