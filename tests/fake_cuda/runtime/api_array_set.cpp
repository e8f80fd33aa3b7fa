// Copies of arrays, and sets. Compiled twice: default_stream.h.
#include "../driver/default_stream.h"
#include "copy_params.h"
#include "runtime.h"

using namespace xpu::fake_cuda;

namespace {

size_t BytesOf(const cudaExtent& extent) { return extent.width * extent.height * extent.depth; }

// One array is asked for its format, whichever it is.
CUDA_MEMCPY3D ArrayCopy(const PlaneEnd& to, const PlaneEnd& from, size_t width, size_t height,
                        cudaMemcpyKind kind) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  cuArray3DGetDescriptor(&descriptor, to.array != nullptr ? to.array : from.array);
  return Layer(Plane(to, from, width, height, kind));
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes,
                              cudaMemcpyKind kind) {
  RuntimeScope scope(XPU_PTDS(33, 217, "cudaMemcpyToArray"));
  const CUDA_MEMCPY3D params = ArrayCopy(InArray(to, x, y), OnPlane(from, bytes), bytes, 1, kind);
  return scope.Return(cuMemcpy3D(&params));
}

cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                cudaMemcpyKind kind) {
  RuntimeScope scope(XPU_PTDS(35, 219, "cudaMemcpyFromArray"));
  const CUDA_MEMCPY3D params = ArrayCopy(OnPlane(to, bytes), InArray(from, x, y), bytes, 1, kind);
  return scope.Return(cuMemcpy3D(&params));
}

// Through memory of its own, and by calls of the runtime API.
cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                                   size_t from_x, size_t from_y, size_t bytes,
                                   cudaMemcpyKind /*kind*/) {
  RuntimeScope scope(XPU_PTDS(37, 221, "cudaMemcpyArrayToArray"));
  void* between = nullptr;
  cudaError_t result = cudaMalloc(&between, bytes);
  if (result != cudaSuccess) return scope.Return(static_cast<CUresult>(result));
  result = cudaMemcpyFromArray(between, from, from_x, from_y, bytes, cudaMemcpyDeviceToDevice);
  if (result == cudaSuccess) {
    result = cudaMemcpyToArray(to, to_x, to_y, between, bytes, cudaMemcpyDeviceToDevice);
  }
  cudaFree(between);
  return scope.Return(static_cast<CUresult>(result));
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from,
                                   size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(42, 226, "cudaMemcpyToArrayAsync"));
  const CUDA_MEMCPY3D params = ArrayCopy(InArray(to, x, y), OnPlane(from, bytes), bytes, 1, kind);
  return scope.Return(cuMemcpy3DAsync(&params, stream));
}

cudaError_t cudaMemcpyFromArrayAsync(void* to, cudaArray_const_t from, size_t x, size_t y,
                                     size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(43, 227, "cudaMemcpyFromArrayAsync"));
  const CUDA_MEMCPY3D params = ArrayCopy(OnPlane(to, bytes), InArray(from, x, y), bytes, 1, kind);
  return scope.Return(cuMemcpy3DAsync(&params, stream));
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind) {
  RuntimeScope scope(XPU_PTDS(34, 218, "cudaMemcpy2DToArray"));
  const CUDA_MEMCPY3D params =
      ArrayCopy(InArray(to, x, y), OnPlane(from, pitch), width, height, kind);
  return scope.Return(cuMemcpy3D(&params));
}

cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x,
                                  size_t y, size_t width, size_t height, cudaMemcpyKind kind) {
  RuntimeScope scope(XPU_PTDS(36, 220, "cudaMemcpy2DFromArray"));
  const CUDA_MEMCPY3D params =
      ArrayCopy(OnPlane(to, pitch), InArray(from, x, y), width, height, kind);
  return scope.Return(cuMemcpy3D(&params));
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y,
                                     cudaArray_const_t from, size_t from_x, size_t from_y,
                                     size_t width, size_t height, cudaMemcpyKind kind) {
  RuntimeScope scope(XPU_PTDS(38, 222, "cudaMemcpy2DArrayToArray"));
  const CUDA_MEMCPY3D params =
      ArrayCopy(InArray(to, to_x, to_y), InArray(from, from_x, from_y), width, height, kind);
  return scope.Return(cuMemcpy3D(&params));
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from,
                                     size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(45, 229, "cudaMemcpy2DToArrayAsync"));
  const CUDA_MEMCPY3D params =
      ArrayCopy(InArray(to, x, y), OnPlane(from, pitch), width, height, kind);
  return scope.Return(cuMemcpy3DAsync(&params, stream));
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t x,
                                       size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(46, 230, "cudaMemcpy2DFromArrayAsync"));
  const CUDA_MEMCPY3D params =
      ArrayCopy(OnPlane(to, pitch), InArray(from, x, y), width, height, kind);
  return scope.Return(cuMemcpy3DAsync(&params, stream));
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  RuntimeScope scope(XPU_PTDS(49, 233, "cudaMemset"));
  return scope.Return(cuMemsetD8(DevicePointer(to), static_cast<unsigned char>(value), bytes));
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  RuntimeScope scope(XPU_PTDS(50, 234, "cudaMemset2D"));
  return scope.Return(
      cuMemsetD2D8(DevicePointer(to), pitch, static_cast<unsigned char>(value), width, height));
}

cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  RuntimeScope scope(XPU_PTDS(142, 243, "cudaMemset3D"));
  if (to.pitch == extent.width) {
    return scope.Return(
        cuMemsetD8(DevicePointer(to.ptr), static_cast<unsigned char>(value), BytesOf(extent)));
  }
  return scope.Return(cuMemsetD2D8(DevicePointer(to.ptr), to.pitch,
                                   static_cast<unsigned char>(value), extent.width,
                                   extent.height * extent.depth));
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(51, 235, "cudaMemsetAsync"));
  return scope.Return(
      cuMemsetD8Async(DevicePointer(to), static_cast<unsigned char>(value), bytes, stream));
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(52, 236, "cudaMemset2DAsync"));
  return scope.Return(cuMemsetD2D8Async(DevicePointer(to), pitch, static_cast<unsigned char>(value),
                                        width, height, stream));
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent,
                              cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(143, 244, "cudaMemset3DAsync"));
  if (to.pitch == extent.width) {
    return scope.Return(cuMemsetD8Async(DevicePointer(to.ptr), static_cast<unsigned char>(value),
                                        BytesOf(extent), stream));
  }
  return scope.Return(cuMemsetD2D8Async(DevicePointer(to.ptr), to.pitch,
                                        static_cast<unsigned char>(value), extent.width,
                                        extent.height * extent.depth, stream));
}

}  // extern "C"
