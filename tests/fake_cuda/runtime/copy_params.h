// The runtime's descriptions of a copy as the driver's.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

namespace xpu::fake_cuda {

inline CUdeviceptr DevicePointer(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

// A __device__ variable is a host variable here.
inline void* InSymbol(const void* symbol, size_t offset) {
  return static_cast<char*>(const_cast<void*>(symbol)) + offset;
}

// One end of a copy in two dimensions: memory with a pitch or an array with a position.
struct PlaneEnd {
  const void* pointer = nullptr;
  size_t pitch = 0;
  CUarray array = nullptr;
  size_t x = 0;
  size_t y = 0;
};

inline PlaneEnd OnPlane(const void* pointer, size_t pitch) { return {pointer, pitch}; }
inline PlaneEnd InArray(cudaArray_const_t array, size_t x, size_t y) {
  return {nullptr, 0, reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array)), x, y};
}

CUDA_MEMCPY2D Plane(const PlaneEnd& to, const PlaneEnd& from, size_t width, size_t height,
                    cudaMemcpyKind kind);

// The plane as a box of one layer.
CUDA_MEMCPY3D Layer(const CUDA_MEMCPY2D& plane);

// What cudaMemcpy3DParms and cudaMemcpy3DPeerParms have in common. Kinds are found by address.
template <typename DriverParams, typename Params>
DriverParams BoxParams(const Params& params) {
  DriverParams box{};
  box.srcMemoryType = params.srcArray != nullptr ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED;
  box.srcArray = reinterpret_cast<CUarray>(params.srcArray);
  box.srcDevice = DevicePointer(params.srcPtr.ptr);
  box.srcPitch = params.srcPtr.pitch;
  box.srcHeight = params.srcPtr.ysize;
  box.srcXInBytes = params.srcPos.x;
  box.srcY = params.srcPos.y;
  box.srcZ = params.srcPos.z;
  box.dstMemoryType = params.dstArray != nullptr ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED;
  box.dstArray = reinterpret_cast<CUarray>(params.dstArray);
  box.dstDevice = DevicePointer(params.dstPtr.ptr);
  box.dstPitch = params.dstPtr.pitch;
  box.dstHeight = params.dstPtr.ysize;
  box.dstXInBytes = params.dstPos.x;
  box.dstY = params.dstPos.y;
  box.dstZ = params.dstPos.z;
  box.WidthInBytes = params.extent.width;
  box.Height = params.extent.height;
  box.Depth = params.extent.depth;
  return box;
}

}  // namespace xpu::fake_cuda
