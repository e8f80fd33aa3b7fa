// Memory, copies and sets. Device memory is host memory.
#include <cstdlib>
#include <cstring>

#include "../settings.h"
#include "calls.h"

using namespace xpu::fake_cuda;

namespace {

void* Pointer(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }

uint8_t HostKind(const void* pointer) { return IsPinned(pointer) ? kPinned : kPageable; }

// Large copies go through the copy engines: vector_add copies 256 KiB over channel 8 (to the
// device) and 12 (from it) of type 2, transformer_shared 256 bytes over channel 1 of type 1.
void ChooseChannel(Activity* copy) {
  if (copy->copy_kind == kCopyDtoD) return;
  if (copy->copy_kind == kCopyHtoD && copy->bytes < 16384) return;
  copy->channel_id = copy->copy_kind == kCopyHtoD ? 8 : 12;
  copy->channel_type = 2;
}

uint64_t Copy(void* to, const void* from, size_t bytes, uint8_t copy_kind, bool async,
              CUstream stream) {
  if (Resolve(stream)->capture == nullptr) std::memmove(to, from, bytes);
  Activity copy{ActivityKind::kMemcpy};
  copy.copy_kind = copy_kind;
  copy.source_kind = copy_kind == kCopyHtoD ? HostKind(from) : kDeviceMemory;
  copy.destination_kind = copy_kind == kCopyDtoH ? HostKind(to) : kDeviceMemory;
  copy.bytes = bytes;
  copy.async = async;
  ChooseChannel(&copy);
  return Enqueue(stream, copy, CopyDurationNs(bytes));
}

// The three blocking copies and the three others differ in names only.
CUresult RunCopy(DriverScope* scope, void* to, const void* from, size_t bytes, uint8_t copy_kind,
                 bool async, CUstream stream) {
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope->Return(result);
  if (to == nullptr || from == nullptr) return scope->Return(CUDA_ERROR_INVALID_VALUE);
  const uint64_t end_ns = Copy(to, from, bytes, copy_kind, async, stream);
  // The real one gives no synchronisation record for this wait, not even with
  // cuptiActivityEnableAllSyncRecords: vector_add.
  if (!async) SleepUntil(end_ns);
  return scope->Return(CUDA_SUCCESS);
}

CUresult Allocate(std::map<uintptr_t, size_t>* table, size_t bytes, void** pointer) {
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return result;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *pointer = std::calloc(1, bytes);
  if (*pointer == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(TheDevice().mutex);
  (*table)[reinterpret_cast<uintptr_t>(*pointer)] = bytes;
  return CUDA_SUCCESS;
}

CUresult Free(std::map<uintptr_t, size_t>* table, void* pointer) {
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return result;
  if (pointer == nullptr) return CUDA_SUCCESS;
  SleepUntil(TailOfAll());
  {
    const std::lock_guard lock(TheDevice().mutex);
    if (table->erase(reinterpret_cast<uintptr_t>(pointer)) == 0) return CUDA_ERROR_INVALID_VALUE;
  }
  std::free(pointer);
  return CUDA_SUCCESS;
}

}  // namespace

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
  return scope.Return(Free(&TheDevice().device_memory, Pointer(pointer)));
}

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int /*flags*/) {
  DriverScope scope(39, "cuMemHostAlloc");
  return scope.Return(Allocate(&TheDevice().pinned_memory, bytes, pointer));
}

CUresult cuMemFreeHost(void* pointer) {
  DriverScope scope(38, "cuMemFreeHost");
  return scope.Return(Free(&TheDevice().pinned_memory, pointer));
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  DriverScope scope(276, "cuMemcpyHtoD_v2");
  return RunCopy(&scope, Pointer(to), from, bytes, kCopyHtoD, false, nullptr);
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  DriverScope scope(278, "cuMemcpyDtoH_v2");
  return RunCopy(&scope, to, Pointer(from), bytes, kCopyDtoH, false, nullptr);
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  DriverScope scope(280, "cuMemcpyDtoD_v2");
  return RunCopy(&scope, Pointer(to), Pointer(from), bytes, kCopyDtoD, false, nullptr);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  DriverScope scope(277, "cuMemcpyHtoDAsync_v2");
  return RunCopy(&scope, Pointer(to), from, bytes, kCopyHtoD, true, stream);
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  DriverScope scope(279, "cuMemcpyDtoHAsync_v2");
  return RunCopy(&scope, to, Pointer(from), bytes, kCopyDtoH, true, stream);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  DriverScope scope(281, "cuMemcpyDtoDAsync_v2");
  return RunCopy(&scope, Pointer(to), Pointer(from), bytes, kCopyDtoD, true, stream);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  DriverScope scope(216, "cuMemsetD8Async");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  if (Resolve(stream)->capture == nullptr) std::memset(Pointer(to), value, bytes);
  Activity set{ActivityKind::kMemset};
  set.value = value;
  set.bytes = bytes;
  Enqueue(stream, set, SetDurationNs(bytes));
  return scope.Return(CUDA_SUCCESS);
}

}  // extern "C"
