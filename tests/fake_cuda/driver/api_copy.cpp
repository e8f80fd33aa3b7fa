// Copies. Compiled twice: default_stream.h.
#include "calls.h"
#include "default_stream.h"
#include "memory.h"

using namespace xpu::fake_cuda;

namespace {

CUresult Blocking(const Place& to, const Place& from, const Box& box) {
  return RunCopy(to, from, box, false, XPU_DEFAULT_STREAM);
}

CUresult Streamed(const Place& to, const Place& from, const Box& box, CUstream stream) {
  return RunCopy(to, from, box, true, XPU_STREAM(stream));
}

}  // namespace

extern "C" {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  DriverScope scope(XPU_PTDS(305, 408, "cuMemcpy"));
  return scope.Return(Blocking(AnyPlace(to), AnyPlace(from), {bytes}));
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext /*to_context*/, CUdeviceptr from,
                      CUcontext /*from_context*/, size_t bytes) {
  DriverScope scope(XPU_PTDS(318, 409, "cuMemcpyPeer"));
  return scope.Return(Blocking(DevicePlace(to), DevicePlace(from), {bytes}));
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  DriverScope scope(XPU_PTDS(276, 397, "cuMemcpyHtoD_v2"));
  return scope.Return(Blocking(DevicePlace(to), HostPlace(from), {bytes}));
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  DriverScope scope(XPU_PTDS(278, 398, "cuMemcpyDtoH_v2"));
  return scope.Return(Blocking(HostPlace(to), DevicePlace(from), {bytes}));
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  DriverScope scope(XPU_PTDS(280, 399, "cuMemcpyDtoD_v2"));
  return scope.Return(Blocking(DevicePlace(to), DevicePlace(from), {bytes}));
}

CUresult cuMemcpyDtoA(CUarray to, size_t to_offset, CUdeviceptr from, size_t bytes) {
  DriverScope scope(XPU_PTDS(285, 400, "cuMemcpyDtoA_v2"));
  return scope.Return(Blocking(ArrayPlace(to, to_offset), DevicePlace(from), {bytes}));
}

CUresult cuMemcpyAtoD(CUdeviceptr to, CUarray from, size_t from_offset, size_t bytes) {
  DriverScope scope(XPU_PTDS(284, 401, "cuMemcpyAtoD_v2"));
  return scope.Return(Blocking(DevicePlace(to), ArrayPlace(from, from_offset), {bytes}));
}

CUresult cuMemcpyHtoA(CUarray to, size_t to_offset, const void* from, size_t bytes) {
  DriverScope scope(XPU_PTDS(292, 402, "cuMemcpyHtoA_v2"));
  return scope.Return(Blocking(ArrayPlace(to, to_offset), HostPlace(from), {bytes}));
}

CUresult cuMemcpyAtoH(void* to, CUarray from, size_t from_offset, size_t bytes) {
  DriverScope scope(XPU_PTDS(282, 403, "cuMemcpyAtoH_v2"));
  return scope.Return(Blocking(HostPlace(to), ArrayPlace(from, from_offset), {bytes}));
}

CUresult cuMemcpyAtoA(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                      size_t bytes) {
  DriverScope scope(XPU_PTDS(286, 404, "cuMemcpyAtoA_v2"));
  return scope.Return(Blocking(ArrayPlace(to, to_offset), ArrayPlace(from, from_offset), {bytes}));
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D* params) {
  DriverScope scope(XPU_PTDS(287, 405, "cuMemcpy2D_v2"));
  return scope.Return(Blocking(DestinationOf(*params), SourceOf(*params), BoxOf(*params)));
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* params) {
  DriverScope scope(XPU_PTDS(288, 406, "cuMemcpy2DUnaligned_v2"));
  return scope.Return(Blocking(DestinationOf(*params), SourceOf(*params), BoxOf(*params)));
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D* params) {
  DriverScope scope(XPU_PTDS(290, 407, "cuMemcpy3D_v2"));
  return scope.Return(Blocking(DestinationOf(*params), SourceOf(*params), BoxOf(*params)));
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* params) {
  DriverScope scope(XPU_PTDS(320, 410, "cuMemcpy3DPeer"));
  return scope.Return(Blocking(DestinationOf(*params), SourceOf(*params), BoxOf(*params)));
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  DriverScope scope(XPU_PTSZ(306, 418, "cuMemcpyAsync"));
  return scope.Return(Streamed(AnyPlace(to), AnyPlace(from), {bytes}, stream));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext /*to_context*/, CUdeviceptr from,
                           CUcontext /*from_context*/, size_t bytes, CUstream stream) {
  DriverScope scope(XPU_PTSZ(319, 426, "cuMemcpyPeerAsync"));
  return scope.Return(Streamed(DevicePlace(to), DevicePlace(from), {bytes}, stream));
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  DriverScope scope(XPU_PTSZ(277, 421, "cuMemcpyHtoDAsync_v2"));
  return scope.Return(Streamed(DevicePlace(to), HostPlace(from), {bytes}, stream));
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  DriverScope scope(XPU_PTSZ(279, 422, "cuMemcpyDtoHAsync_v2"));
  return scope.Return(Streamed(HostPlace(to), DevicePlace(from), {bytes}, stream));
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  DriverScope scope(XPU_PTSZ(281, 423, "cuMemcpyDtoDAsync_v2"));
  return scope.Return(Streamed(DevicePlace(to), DevicePlace(from), {bytes}, stream));
}

CUresult cuMemcpyHtoAAsync(CUarray to, size_t to_offset, const void* from, size_t bytes,
                           CUstream stream) {
  DriverScope scope(XPU_PTSZ(293, 419, "cuMemcpyHtoAAsync_v2"));
  return scope.Return(Streamed(ArrayPlace(to, to_offset), HostPlace(from), {bytes}, stream));
}

CUresult cuMemcpyAtoHAsync(void* to, CUarray from, size_t from_offset, size_t bytes,
                           CUstream stream) {
  DriverScope scope(XPU_PTSZ(283, 420, "cuMemcpyAtoHAsync_v2"));
  return scope.Return(Streamed(HostPlace(to), ArrayPlace(from, from_offset), {bytes}, stream));
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* params, CUstream stream) {
  DriverScope scope(XPU_PTSZ(289, 424, "cuMemcpy2DAsync_v2"));
  return scope.Return(Streamed(DestinationOf(*params), SourceOf(*params), BoxOf(*params), stream));
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* params, CUstream stream) {
  DriverScope scope(XPU_PTSZ(291, 425, "cuMemcpy3DAsync_v2"));
  return scope.Return(Streamed(DestinationOf(*params), SourceOf(*params), BoxOf(*params), stream));
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* params, CUstream stream) {
  DriverScope scope(XPU_PTSZ(321, 427, "cuMemcpy3DPeerAsync"));
  return scope.Return(Streamed(DestinationOf(*params), SourceOf(*params), BoxOf(*params), stream));
}

// A record for each copy of the batch.
CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                            CUmemcpyAttributes* /*attributes*/, size_t* /*attribute_indices*/,
                            size_t /*attribute_count*/, CUstream stream) {
  DriverScope scope(XPU_PTSZ(796, 797, "cuMemcpyBatchAsync_v2"));
  if (stream == nullptr) return scope.Return(CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = Streamed(AnyPlace(to[i]), AnyPlace(from[i]), {sizes[i]}, stream);
    if (result != CUDA_SUCCESS) return scope.Return(result);
  }
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* operations,
                              unsigned long long /*flags*/, CUstream stream) {
  DriverScope scope(XPU_PTSZ(798, 799, "cuMemcpy3DBatchAsync_v2"));
  if (stream == nullptr) return scope.Return(CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < count; ++i) {
    const CUextent3D& extent = operations[i].extent;
    const CUresult result = Streamed(PlaceOf(operations[i].dst), PlaceOf(operations[i].src),
                                     {extent.width, extent.height, extent.depth}, stream);
    if (result != CUDA_SUCCESS) return scope.Return(result);
  }
  return scope.Return(CUDA_SUCCESS);
}

}  // extern "C"
