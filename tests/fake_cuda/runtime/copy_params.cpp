#include "copy_params.h"

namespace xpu::fake_cuda {
namespace {

CUmemorytype TypeOf(const PlaneEnd& end, bool host, bool known) {
  if (end.array != nullptr) return CU_MEMORYTYPE_ARRAY;
  if (!known) return CU_MEMORYTYPE_UNIFIED;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

}  // namespace

CUDA_MEMCPY2D Plane(const PlaneEnd& to, const PlaneEnd& from, size_t width, size_t height,
                    cudaMemcpyKind kind) {
  const bool known = kind != cudaMemcpyDefault;
  const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  CUDA_MEMCPY2D plane{};
  plane.srcMemoryType = TypeOf(from, from_host, known);
  plane.srcHost = from.pointer;
  plane.srcDevice = DevicePointer(from.pointer);
  plane.srcArray = from.array;
  plane.srcPitch = from.pitch;
  plane.srcXInBytes = from.x;
  plane.srcY = from.y;
  plane.dstMemoryType = TypeOf(to, to_host, known);
  plane.dstHost = const_cast<void*>(to.pointer);
  plane.dstDevice = DevicePointer(to.pointer);
  plane.dstArray = to.array;
  plane.dstPitch = to.pitch;
  plane.dstXInBytes = to.x;
  plane.dstY = to.y;
  plane.WidthInBytes = width;
  plane.Height = height;
  return plane;
}

CUDA_MEMCPY3D Layer(const CUDA_MEMCPY2D& plane) {
  CUDA_MEMCPY3D box{};
  box.srcMemoryType = plane.srcMemoryType;
  box.srcHost = plane.srcHost;
  box.srcDevice = plane.srcDevice;
  box.srcArray = plane.srcArray;
  box.srcPitch = plane.srcPitch;
  box.srcXInBytes = plane.srcXInBytes;
  box.srcY = plane.srcY;
  box.dstMemoryType = plane.dstMemoryType;
  box.dstHost = plane.dstHost;
  box.dstDevice = plane.dstDevice;
  box.dstArray = plane.dstArray;
  box.dstPitch = plane.dstPitch;
  box.dstXInBytes = plane.dstXInBytes;
  box.dstY = plane.dstY;
  box.WidthInBytes = plane.WidthInBytes;
  box.Height = plane.Height;
  box.Depth = 1;
  return box;
}

}  // namespace xpu::fake_cuda
