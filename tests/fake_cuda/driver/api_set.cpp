// Sets. Compiled twice: default_stream.h.
#include "calls.h"
#include "default_stream.h"
#include "memory.h"

using namespace xpu::fake_cuda;

extern "C" {

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  DriverScope scope(XPU_PTDS(249, 411, "cuMemsetD8_v2"));
  return scope.Return(RunSet(to, 0, value, 1, {count}, false, XPU_DEFAULT_STREAM));
}

CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
  DriverScope scope(XPU_PTDS(250, 412, "cuMemsetD16_v2"));
  return scope.Return(RunSet(to, 0, value, 2, {count * 2}, false, XPU_DEFAULT_STREAM));
}

CUresult cuMemsetD32(CUdeviceptr to, unsigned int value, size_t count) {
  DriverScope scope(XPU_PTDS(251, 413, "cuMemsetD32_v2"));
  return scope.Return(RunSet(to, 0, value, 4, {count * 4}, false, XPU_DEFAULT_STREAM));
}

CUresult cuMemsetD2D8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                      size_t height) {
  DriverScope scope(XPU_PTDS(252, 414, "cuMemsetD2D8_v2"));
  return scope.Return(RunSet(to, pitch, value, 1, {width, height}, false, XPU_DEFAULT_STREAM));
}

CUresult cuMemsetD2D16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                       size_t height) {
  DriverScope scope(XPU_PTDS(253, 415, "cuMemsetD2D16_v2"));
  return scope.Return(RunSet(to, pitch, value, 2, {width * 2, height}, false, XPU_DEFAULT_STREAM));
}

CUresult cuMemsetD2D32(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                       size_t height) {
  DriverScope scope(XPU_PTDS(254, 416, "cuMemsetD2D32_v2"));
  return scope.Return(RunSet(to, pitch, value, 4, {width * 4, height}, false, XPU_DEFAULT_STREAM));
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  DriverScope scope(XPU_PTSZ(216, 428, "cuMemsetD8Async"));
  return scope.Return(RunSet(to, 0, value, 1, {count}, true, XPU_STREAM(stream)));
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  DriverScope scope(XPU_PTSZ(218, 429, "cuMemsetD16Async"));
  return scope.Return(RunSet(to, 0, value, 2, {count * 2}, true, XPU_STREAM(stream)));
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  DriverScope scope(XPU_PTSZ(220, 430, "cuMemsetD32Async"));
  return scope.Return(RunSet(to, 0, value, 4, {count * 4}, true, XPU_STREAM(stream)));
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
  DriverScope scope(XPU_PTSZ(222, 431, "cuMemsetD2D8Async"));
  return scope.Return(RunSet(to, pitch, value, 1, {width, height}, true, XPU_STREAM(stream)));
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream) {
  DriverScope scope(XPU_PTSZ(224, 432, "cuMemsetD2D16Async"));
  return scope.Return(RunSet(to, pitch, value, 2, {width * 2, height}, true, XPU_STREAM(stream)));
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream) {
  DriverScope scope(XPU_PTSZ(226, 433, "cuMemsetD2D32Async"));
  return scope.Return(RunSet(to, pitch, value, 4, {width * 4, height}, true, XPU_STREAM(stream)));
}

}  // extern "C"
