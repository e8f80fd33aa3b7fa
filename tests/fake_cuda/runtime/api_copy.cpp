// Copies of plain memory. Compiled twice: default_stream.h.
#include "../driver/default_stream.h"
#include "copy_params.h"
#include "runtime.h"

using namespace xpu::fake_cuda;

namespace {

CUresult CopyBlocking(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return cuMemcpyHtoD(DevicePointer(to), from, bytes);
    case cudaMemcpyDeviceToHost:
      return cuMemcpyDtoH(to, DevicePointer(from), bytes);
    case cudaMemcpyDeviceToDevice:
      return cuMemcpyDtoD(DevicePointer(to), DevicePointer(from), bytes);
    default:
      return cuMemcpy(DevicePointer(to), DevicePointer(from), bytes);
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
      return cuMemcpyAsync(DevicePointer(to), DevicePointer(from), bytes, stream);
  }
}

void FindSymbol() {
  CUdeviceptr pointer = 0;
  size_t bytes = 0;
  cuLibraryGetGlobal(&pointer, &bytes, TheLibrary(), nullptr);
}

// cudart looks at both contexts before it copies from one to the other.
CUcontext PeerContext(int device) {
  CUcontext context = xpu_fake_driver()->primary_context(device);
  unsigned version = 0;
  cuCtxGetApiVersion(context, &version);
  return context;
}

CUDA_MEMCPY3D_PEER PeerBox(const cudaMemcpy3DPeerParms& params) {
  auto box = BoxParams<CUDA_MEMCPY3D_PEER>(params);
  box.srcContext = PeerContext(params.srcDevice);
  box.dstContext = PeerContext(params.dstDevice);
  return box;
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  RuntimeScope scope(XPU_PTDS(31, 215, "cudaMemcpy"));
  return scope.Return(CopyBlocking(to, from, bytes, kind));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(41, 225, "cudaMemcpyAsync"));
  return scope.Return(CopyAsync(to, from, bytes, kind, stream));
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  RuntimeScope scope(XPU_PTDS(32, 216, "cudaMemcpy2D"));
  const CUDA_MEMCPY2D params =
      Plane(OnPlane(to, to_pitch), OnPlane(from, from_pitch), width, height, kind);
  return scope.Return(cuMemcpy2DUnaligned(&params));
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(44, 228, "cudaMemcpy2DAsync"));
  const CUDA_MEMCPY2D params =
      Plane(OnPlane(to, to_pitch), OnPlane(from, from_pitch), width, height, kind);
  return scope.Return(cuMemcpy2DAsync(&params, stream));
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* params) {
  RuntimeScope scope(XPU_PTDS(144, 245, "cudaMemcpy3D"));
  const CUDA_MEMCPY3D box = BoxParams<CUDA_MEMCPY3D>(*params);
  return scope.Return(cuMemcpy3D(&box));
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* params, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(145, 246, "cudaMemcpy3DAsync"));
  const CUDA_MEMCPY3D box = BoxParams<CUDA_MEMCPY3D>(*params);
  return scope.Return(cuMemcpy3DAsync(&box, stream));
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* params) {
  RuntimeScope scope(XPU_PTDS(162, 249, "cudaMemcpy3DPeer"));
  const CUDA_MEMCPY3D_PEER box = PeerBox(*params);
  return scope.Return(cuMemcpy3DPeer(&box));
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* params, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(163, 250, "cudaMemcpy3DPeerAsync"));
  const CUDA_MEMCPY3D_PEER box = PeerBox(*params);
  return scope.Return(cuMemcpy3DPeerAsync(&box, stream));
}

cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes* attributes,
                                 size_t* attribute_indices, size_t attribute_count,
                                 cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(509, 510, "cudaMemcpyBatchAsync"));
  return scope.Return(cuMemcpyBatchAsync(
      reinterpret_cast<CUdeviceptr*>(const_cast<void**>(to)),
      reinterpret_cast<CUdeviceptr*>(const_cast<const void**>(from)), const_cast<size_t*>(sizes),
      count, reinterpret_cast<CUmemcpyAttributes*>(attributes), attribute_indices, attribute_count,
      stream));
}

// The two structures have the same layout.
cudaError_t cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* operations,
                                   unsigned long long flags, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(511, 512, "cudaMemcpy3DBatchAsync"));
  static_assert(sizeof(cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP));
  return scope.Return(cuMemcpy3DBatchAsync(
      count, reinterpret_cast<CUDA_MEMCPY3D_BATCH_OP*>(operations), flags, stream));
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  RuntimeScope scope(XPU_PTDS(39, 223, "cudaMemcpyToSymbol"));
  FindSymbol();  // its size, then its address
  FindSymbol();
  return scope.Return(CopyBlocking(InSymbol(symbol, offset), from, bytes, kind));
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  RuntimeScope scope(XPU_PTDS(40, 224, "cudaMemcpyFromSymbol"));
  FindSymbol();  // its size, then its address
  FindSymbol();
  return scope.Return(CopyBlocking(to, InSymbol(symbol, offset), bytes, kind));
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(47, 231, "cudaMemcpyToSymbolAsync"));
  FindSymbol();
  return scope.Return(CopyAsync(InSymbol(symbol, offset), from, bytes, kind, stream));
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  RuntimeScope scope(XPU_PTSZ(48, 232, "cudaMemcpyFromSymbolAsync"));
  FindSymbol();
  return scope.Return(CopyAsync(to, InSymbol(symbol, offset), bytes, kind, stream));
}

#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           size_t bytes) {
  RuntimeScope scope(160, "cudaMemcpyPeer");
  CUcontext to_context = PeerContext(to_device);
  CUcontext from_context = PeerContext(from_device);
  return scope.Return(
      cuMemcpyPeer(DevicePointer(to), to_context, DevicePointer(from), from_context, bytes));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  RuntimeScope scope(161, "cudaMemcpyPeerAsync");
  CUcontext to_context = PeerContext(to_device);
  CUcontext from_context = PeerContext(from_device);
  return scope.Return(cuMemcpyPeerAsync(DevicePointer(to), to_context, DevicePointer(from),
                                        from_context, bytes, stream));
}

#endif

}  // extern "C"
