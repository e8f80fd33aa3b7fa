#include "memory.h"

#include <cstdlib>
#include <cstring>

#include "../settings.h"

namespace xpu::fake_cuda {
namespace {

const Block* Find(const Table& table, const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto after = table.upper_bound(address);
  if (after == table.begin()) return nullptr;
  --after;
  return address < after->first + after->second.size ? &after->second : nullptr;
}

// Large copies go through the copy engines: vector_add copies 256 KiB over channel 8 (to the
// device) and 12 (from it) of type 2, transformer_shared 256 bytes over channel 1 of type 1.
void ChooseChannel(Activity* copy) {
  if (copy->copy_kind != kCopyHtoD && copy->copy_kind != kCopyDtoH) return;
  if (copy->copy_kind == kCopyHtoD && copy->bytes < 16384) return;
  copy->channel_id = copy->copy_kind == kCopyHtoD ? 8 : 12;
  copy->channel_type = 2;
}

enum Side { kHostSide, kDeviceSide, kArraySide };

Side SideOf(const Place& place) {
  if (place.kind == kArray) return kArraySide;
  return place.kind == kPageable || place.kind == kPinned ? kHostSide : kDeviceSide;
}

uint8_t CopyKind(const Place& to, const Place& from) {
  constexpr uint8_t kKinds[3][3] = {{kCopyHtoH, kCopyHtoD, kCopyHtoA},
                                    {kCopyDtoH, kCopyDtoD, kCopyDtoA},
                                    {kCopyAtoH, kCopyAtoD, kCopyAtoA}};
  return kKinds[SideOf(from)][SideOf(to)];
}

void Move(const Place& to, const Place& from, const Box& box) {
  for (size_t z = 0; z < box.depth; ++z) {
    for (size_t y = 0; y < box.height; ++y) {
      std::memmove(to.data + z * to.layer + y * to.pitch,
                   from.data + z * from.layer + y * from.pitch, box.width);
    }
  }
}

// `offset_bytes` within a place that has its pitch.
Place At(Place place, size_t offset_bytes) {
  place.data += offset_bytes;
  return place;
}

Place ByType(CUmemorytype type, const void* host, CUdeviceptr pointer, CUarray array) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return HostPlace(host);
    case CU_MEMORYTYPE_ARRAY:
      return ArrayPlace(array);
    case CU_MEMORYTYPE_DEVICE:
      return DevicePlace(pointer);
    default:
      return AnyPlace(pointer);
  }
}

template <typename Params>
Place SourceOfBox(const Params& params) {
  Place place = ByType(params.srcMemoryType, params.srcHost, params.srcDevice, params.srcArray);
  if (place.kind != kArray) place = Pitched(place, params.srcPitch, params.srcHeight);
  return At(place, params.srcZ * place.layer + params.srcY * place.pitch + params.srcXInBytes);
}

template <typename Params>
Place DestinationOfBox(const Params& params) {
  Place place = ByType(params.dstMemoryType, params.dstHost, params.dstDevice, params.dstArray);
  if (place.kind != kArray) place = Pitched(place, params.dstPitch, params.dstHeight);
  return At(place, params.dstZ * place.layer + params.dstY * place.pitch + params.dstXInBytes);
}

}  // namespace

Place HostPlace(const void* pointer) {
  Place place;
  place.data = static_cast<uint8_t*>(const_cast<void*>(pointer));
  const std::lock_guard lock(TheDevice().mutex);
  place.kind = Find(TheDevice().pinned_memory, pointer) != nullptr ? kPinned : kPageable;
  return place;
}

Place DevicePlace(CUdeviceptr pointer) {
  Place place;
  place.data = reinterpret_cast<uint8_t*>(pointer);
  place.kind = kDeviceMemory;
  place.device = CurrentContext()->ordinal;
  const std::lock_guard lock(TheDevice().mutex);
  if (Find(TheDevice().managed_memory, place.data) != nullptr) place.kind = kManaged;
  if (const Block* block = Find(TheDevice().device_memory, place.data)) {
    place.device = block->device;
  }
  return place;
}

Place ArrayPlace(CUarray array, size_t offset) {
  Place place;
  place.data = array->data.data() + offset;
  place.pitch = array->width;
  place.layer = array->width * array->height;
  place.kind = kArray;
  return place;
}

Place AnyPlace(CUdeviceptr pointer) {
  const auto* address = reinterpret_cast<const void*>(pointer);
  bool of_device = false;
  {
    const std::lock_guard lock(TheDevice().mutex);
    of_device = Find(TheDevice().device_memory, address) != nullptr ||
                Find(TheDevice().managed_memory, address) != nullptr;
  }
  return of_device ? DevicePlace(pointer) : HostPlace(address);
}

Place Pitched(Place place, size_t pitch, size_t rows) {
  place.pitch = pitch;
  place.layer = pitch * rows;
  return place;
}

Place SourceOf(const CUDA_MEMCPY2D& params) {
  Place place = ByType(params.srcMemoryType, params.srcHost, params.srcDevice, params.srcArray);
  if (place.kind != kArray) place = Pitched(place, params.srcPitch, 0);
  return At(place, params.srcY * place.pitch + params.srcXInBytes);
}

Place DestinationOf(const CUDA_MEMCPY2D& params) {
  Place place = ByType(params.dstMemoryType, params.dstHost, params.dstDevice, params.dstArray);
  if (place.kind != kArray) place = Pitched(place, params.dstPitch, 0);
  return At(place, params.dstY * place.pitch + params.dstXInBytes);
}

Box BoxOf(const CUDA_MEMCPY2D& params) { return {params.WidthInBytes, params.Height}; }

Place SourceOf(const CUDA_MEMCPY3D& params) { return SourceOfBox(params); }
Place DestinationOf(const CUDA_MEMCPY3D& params) { return DestinationOfBox(params); }
Box BoxOf(const CUDA_MEMCPY3D& params) {
  return {params.WidthInBytes, params.Height, params.Depth};
}

Place SourceOf(const CUDA_MEMCPY3D_PEER& params) { return SourceOfBox(params); }
Place DestinationOf(const CUDA_MEMCPY3D_PEER& params) { return DestinationOfBox(params); }
Box BoxOf(const CUDA_MEMCPY3D_PEER& params) {
  return {params.WidthInBytes, params.Height, params.Depth};
}

Place PlaceOf(const CUmemcpy3DOperand& operand) {
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    return At(ArrayPlace(operand.op.array.array), operand.op.array.offset.x);
  }
  const auto& pointer = operand.op.ptr;
  return Pitched(AnyPlace(pointer.ptr), pointer.rowLength, pointer.layerHeight);
}

Work CopyWork(const Place& to, const Place& from, const Box& box, bool async) {
  Work work;
  Activity& copy = work.activity;
  copy.kind = ActivityKind::kMemcpy;
  copy.copy_kind = CopyKind(to, from);
  copy.source_kind = from.kind;
  copy.destination_kind = to.kind;
  copy.bytes = box.bytes();
  copy.async = async;
  if (copy.copy_kind == kCopyDtoD && to.device != from.device) {
    copy.kind = ActivityKind::kMemcpyPeer;
    copy.copy_kind = kCopyPtoP;
    copy.source_device = from.device;
    copy.destination_device = to.device;
  }
  ChooseChannel(&copy);
  work.duration_ns = CopyDurationNs(copy.bytes);
  return work;
}

Work SetWork(uint32_t value, size_t bytes, bool async) {
  Work work;
  work.activity.kind = ActivityKind::kMemset;
  work.activity.value = value;
  work.activity.bytes = bytes;
  work.activity.async = async;
  work.duration_ns = SetDurationNs(bytes);
  return work;
}

CUresult RunCopy(const Place& to, const Place& from, const Box& box, bool async, CUstream stream) {
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return result;
  if (to.data == nullptr || from.data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (Resolve(stream)->capture == nullptr) Move(to, from, box);
  const uint64_t end_ns = Enqueue(stream, CopyWork(to, from, box, async));
  // The real one gives no synchronization record for this wait, not even with
  // cuptiActivityEnableAllSyncRecords: vector_add.
  if (!async) WaitUntil(*CurrentContext(), end_ns);
  return async ? CUDA_SUCCESS : CheckContext();
}

CUresult RunSet(CUdeviceptr to, size_t pitch, uint32_t value, size_t element_bytes, const Box& box,
                bool async, CUstream stream) {
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return result;
  if (to == 0) return CUDA_ERROR_INVALID_VALUE;
  auto* data = reinterpret_cast<uint8_t*>(to);
  if (Resolve(stream)->capture == nullptr) {
    for (size_t y = 0; y < box.height; ++y) {
      for (size_t x = 0; x < box.width; x += element_bytes) {
        std::memcpy(data + y * pitch + x, &value, element_bytes);
      }
    }
  }
  Enqueue(stream, SetWork(value, box.bytes(), async));
  return CUDA_SUCCESS;
}

namespace {

constexpr uint32_t kAllocated = 1;
constexpr uint32_t kFreed = 2;

uint8_t KindOf(const Table* table) {
  if (table == &TheDevice().pinned_memory) return kPinned;
  return table == &TheDevice().managed_memory ? kManaged : kDeviceMemory;
}

void EmitOperation(uint32_t type, const void* pointer, const Block& block, uint8_t kind) {
  Activity activity{ActivityKind::kMemoryOperation};
  activity.correlation_id = TheDriver().current_correlation_id();
  activity.device_id = block.device;
  activity.context_id = ContextId(CurrentContext());
  activity.start_ns = activity.end_ns = NowNs();
  activity.type = type;
  activity.address = reinterpret_cast<uintptr_t>(pointer);
  activity.bytes = block.size;
  activity.source_kind = kind;
  Emit(activity);
}

}  // namespace

CUresult Allocate(Table* table, size_t bytes, void** pointer) {
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return result;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *pointer = std::calloc(1, bytes);
  if (*pointer == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const Block block{bytes, CurrentContext()->ordinal};
  {
    const std::lock_guard lock(TheDevice().mutex);
    (*table)[reinterpret_cast<uintptr_t>(*pointer)] = block;
  }
  EmitOperation(kAllocated, *pointer, block, KindOf(table));
  return CUDA_SUCCESS;
}

CUresult Free(const std::vector<Table*>& tables, void* pointer) {
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return result;
  if (pointer == nullptr) return CUDA_SUCCESS;
  WaitForAll(CurrentContext());
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return result;
  for (Table* table : tables) {
    std::unique_lock lock(TheDevice().mutex);
    const auto found = table->find(reinterpret_cast<uintptr_t>(pointer));
    if (found == table->end()) continue;
    const Block block = found->second;
    table->erase(found);
    lock.unlock();
    EmitOperation(kFreed, pointer, block, KindOf(table));
    std::free(pointer);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace xpu::fake_cuda
