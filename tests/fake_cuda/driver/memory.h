// Memory, and memory operations as work. Device memory is host memory, and memory operations happen
// when they are enqueued.
#pragma once

#include "device.h"

namespace xpu::fake_cuda {

// One end of a copy.
struct Place {
  uint8_t* data = nullptr;
  size_t pitch = 0;     // bytes from row to row
  size_t layer = 0;     // bytes from layer to layer
  uint8_t kind = 0;     // CUpti_ActivityMemoryKind
  uint32_t device = 0;  // of device memory
};

struct Box {
  size_t width;  // bytes
  size_t height = 1;
  size_t depth = 1;

  size_t bytes() const { return width * height * depth; }
};

Place HostPlace(const void* pointer);
Place DevicePlace(CUdeviceptr pointer);
Place ArrayPlace(CUarray array, size_t offset = 0);
Place AnyPlace(CUdeviceptr pointer);  // by looking the address up, as unified addressing does
Place Pitched(Place place, size_t pitch, size_t rows);

// The parts of the structures of parameters. CUDA_MEMCPY2D has no layers.
Place SourceOf(const CUDA_MEMCPY2D& params);
Place DestinationOf(const CUDA_MEMCPY2D& params);
Box BoxOf(const CUDA_MEMCPY2D& params);
Place SourceOf(const CUDA_MEMCPY3D& params);
Place DestinationOf(const CUDA_MEMCPY3D& params);
Box BoxOf(const CUDA_MEMCPY3D& params);
Place SourceOf(const CUDA_MEMCPY3D_PEER& params);
Place DestinationOf(const CUDA_MEMCPY3D_PEER& params);
Box BoxOf(const CUDA_MEMCPY3D_PEER& params);
Place PlaceOf(const CUmemcpy3DOperand& operand);

Work CopyWork(const Place& to, const Place& from, const Box& box, bool async);
Work SetWork(uint32_t value, size_t bytes, bool async);

// A blocking copy waits for its end.
CUresult RunCopy(const Place& to, const Place& from, const Box& box, bool async, CUstream stream);

// `box` in bytes; `value` has `element_bytes`.
CUresult RunSet(CUdeviceptr to, size_t pitch, uint32_t value, size_t element_bytes, const Box& box,
                bool async, CUstream stream);

using Table = std::map<uintptr_t, Block>;
CUresult Allocate(Table* table, size_t bytes, void** pointer);
// Waits for all work; CUDA_ERROR_INVALID_VALUE: not in one of the tables.
CUresult Free(const std::vector<Table*>& tables, void* pointer);

}  // namespace xpu::fake_cuda
