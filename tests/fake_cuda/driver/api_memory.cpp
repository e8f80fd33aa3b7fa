// Allocation.
#include "calls.h"
#include "memory.h"

using namespace xpu::fake_cuda;

extern "C" {

CUresult cuMemAlloc(CUdeviceptr* pointer, size_t bytes) {
  DriverScope scope(243, "cuMemAlloc_v2");
  void* memory = nullptr;
  const CUresult result = Allocate(&TheDevice().device_memory, bytes, &memory);
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<CUdeviceptr>(memory);
  return scope.Return(result);
}

CUresult cuMemFree(CUdeviceptr pointer) {
  DriverScope scope(245, "cuMemFree_v2");
  return scope.Return(Free({&TheDevice().device_memory, &TheDevice().managed_memory},
                           reinterpret_cast<void*>(pointer)));
}

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int /*flags*/) {
  DriverScope scope(39, "cuMemHostAlloc");
  return scope.Return(Allocate(&TheDevice().pinned_memory, bytes, pointer));
}

CUresult cuMemFreeHost(void* pointer) {
  DriverScope scope(38, "cuMemFreeHost");
  return scope.Return(Free({&TheDevice().pinned_memory}, pointer));
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned int /*flags*/) {
  DriverScope scope(371, "cuMemAllocManaged");
  void* memory = nullptr;
  const CUresult result = Allocate(&TheDevice().managed_memory, bytes, &memory);
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<CUdeviceptr>(memory);
  return scope.Return(result);
}

CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  DriverScope scope(274, "cuArray3DCreate_v2");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  const size_t rows = descriptor->Height == 0 ? 1 : descriptor->Height;
  *array = new CUarray_st;
  (*array)->width = descriptor->Width * descriptor->NumChannels;
  (*array)->height = rows;
  (*array)->data.resize((*array)->width * rows);
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray array) {
  DriverScope scope(275, "cuArray3DGetDescriptor_v2");
  *descriptor = {array->width, array->height, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuArrayDestroy(CUarray array) {
  DriverScope scope(89, "cuArrayDestroy");
  WaitForAll(CurrentContext());
  delete array;
  return scope.Return(CUDA_SUCCESS);
}

}  // extern "C"
