// Every variant of memcpy, memset and synchronization, one function each. Compiled twice, as
// launch_entry_points.h is: copies.cu calls the plain functions, copies_per_thread.cu their _ptsz
// and _ptds twins where there are some.
#pragma once

#include <vector>

#include <cuda.h>

#include "gpu.h"

#ifndef XPU_COPY
#error "XPU_COPY(name) says what the functions of this copy are called"
#endif

inline constexpr size_t kWidth = 256;
inline constexpr size_t kHeight = 64;  // of what has two dimensions; or kRows times kLayers
inline constexpr size_t kRows = 8;
inline constexpr size_t kLayers = 8;
inline constexpr size_t kBytes = kWidth * kHeight;

// What the calls work on.
struct Resources {
  void* a = nullptr;  // of the device, kBytes each
  void* b = nullptr;
  void* c = nullptr;
  const void* symbol = nullptr;  // a __device__ variable
  void* managed = nullptr;
  void* pinned = nullptr;
  void* pageable = nullptr;
  cudaArray_t array = nullptr;  // kWidth x kHeight bytes
  cudaArray_t other_array = nullptr;
  cudaArray_t line = nullptr;  // kBytes x 0
  cudaArray_t other_line = nullptr;
  CUcontext context = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  std::vector<void*> allocated;

  void** Push() { return &allocated.emplace_back(); }
  void* Pop() {
    if (allocated.empty()) return nullptr;
    void* last = allocated.back();
    allocated.pop_back();
    return last;
  }
};

struct CopyCall {
  const char* function;  // ours: the direct caller of the API function
  const char* api;       // without _v2, _ptsz
  const char* kind;
  size_t bytes;
  int records;                       // that each call owes
  int (*run)(Resources& resources);  // 0, or a CUDA error
};

struct CopyCalls {
  const CopyCall* calls;
  size_t count;
};
CopyCalls PlainCopyCalls();
CopyCalls PerThreadCopyCalls();

namespace {

inline CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline CUarray Array(cudaArray_t array) { return reinterpret_cast<CUarray>(array); }
inline cudaExtent Extent() { return {kWidth, kRows, kLayers}; }
inline cudaPitchedPtr Pitched(void* pointer) { return {pointer, kWidth, kWidth, kRows}; }

inline cudaMemcpy3DParms Runtime3D(const Resources& resources) {
  cudaMemcpy3DParms params{};
  params.srcPtr = Pitched(resources.a);
  params.dstPtr = Pitched(resources.b);
  params.extent = Extent();
  params.kind = cudaMemcpyDeviceToDevice;
  return params;
}

inline cudaMemcpy3DPeerParms Runtime3DPeer(const Resources& resources) {
  cudaMemcpy3DPeerParms params{};
  params.srcPtr = Pitched(resources.a);
  params.dstPtr = Pitched(resources.b);
  params.extent = Extent();
  return params;
}

inline cudaMemcpy3DBatchOp Runtime3DBatch(const Resources& resources) {
  cudaMemcpy3DBatchOp operation{};
  operation.src.type = operation.dst.type = cudaMemcpyOperandTypePointer;
  operation.src.op.ptr = {resources.a, kWidth, kRows, {cudaMemLocationTypeDevice, 0}};
  operation.dst.op.ptr = {resources.b, kWidth, kRows, {cudaMemLocationTypeDevice, 0}};
  operation.extent = Extent();
  operation.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  return operation;
}

inline CUDA_MEMCPY2D Driver2D(const Resources& resources) {
  CUDA_MEMCPY2D params{};
  params.srcMemoryType = params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  params.srcDevice = Address(resources.a);
  params.dstDevice = Address(resources.b);
  params.srcPitch = params.dstPitch = params.WidthInBytes = kWidth;
  params.Height = kHeight;
  return params;
}

template <typename Params>
Params DriverBox(const Resources& resources) {
  Params params{};
  params.srcMemoryType = params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  params.srcDevice = Address(resources.a);
  params.dstDevice = Address(resources.b);
  params.srcPitch = params.dstPitch = params.WidthInBytes = kWidth;
  params.srcHeight = params.dstHeight = params.Height = kRows;
  params.Depth = kLayers;
  return params;
}

inline CUDA_MEMCPY3D Driver3D(const Resources& resources) {
  return DriverBox<CUDA_MEMCPY3D>(resources);
}

inline CUDA_MEMCPY3D_PEER Driver3DPeer(const Resources& resources) {
  auto params = DriverBox<CUDA_MEMCPY3D_PEER>(resources);
  params.srcContext = params.dstContext = resources.context;
  return params;
}

inline CUDA_MEMCPY3D_BATCH_OP Driver3DBatch(const Resources& resources) {
  CUDA_MEMCPY3D_BATCH_OP operation{};
  operation.src.type = operation.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  operation.src.op.ptr = {Address(resources.a), kWidth, kRows, {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  operation.dst.op.ptr = {Address(resources.b), kWidth, kRows, {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  operation.extent = {kWidth, kRows, kLayers};
  operation.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return operation;
}

inline CUmemLocation HostLocation() { return {CU_MEM_LOCATION_TYPE_HOST, 0}; }

}  // namespace

// Some of the array functions are deprecated.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define XPU_CALL(function, api, kind, bytes, records, ...) \
  XPU_FRAME int XPU_COPY(function)([[maybe_unused]] Resources & resources) { __VA_ARGS__ }
#include "copies_calls.h"
#undef XPU_CALL
#pragma GCC diagnostic pop

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define XPU_COPY_NAME(name) #name "_per_thread"
#else
#define XPU_COPY_NAME(name) #name
#endif

namespace {

constexpr CopyCall kCopyCalls[] = {
#define XPU_CALL(function, api, kind, bytes, records, ...) \
  {XPU_COPY_NAME(function), #api, kind, bytes, records, &XPU_COPY(function)},
#include "copies_calls.h"
#undef XPU_CALL
};

}  // namespace
