// Memory that the program allocated for the GPUs: how much at once, from where, and what stayed.
#pragma once

#include <cstdint>
#include <vector>

#include "report/analysis/analysis.h"

namespace xpu {

// "device", "managed", "pinned": memory of a GPU, or of the host.
std::string_view MemoryKindText(uint32_t memory_kind);
bool IsPageable(uint32_t memory_kind);
bool IsOfHost(uint32_t memory_kind);  // pageable or pinned
bool IsOfGpu(uint32_t memory_kind);

struct MemoryAllocation {
  const MemoryOperation* operation = nullptr;
  uint32_t gpu = 0;     // as the report numbers it
  uint32_t launch = 0;  // the call that allocated it; GpuWork::kNoLaunch: not known
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;  // 0: it was never freed
  bool at_peak = false;
};

// What a GPU had allocated after an operation.
struct MemoryLevel {
  uint64_t time_ns = 0;
  uint64_t bytes = 0;
};

struct GpuMemoryUse {
  uint32_t gpu = 0;
  uint64_t peak_bytes = 0;  // of the GPU's own memory, as the levels
  uint64_t peak_ns = 0;
  uint64_t left_bytes = 0;  // never freed
  uint64_t left_count = 0;
  uint64_t count = 0;
  std::vector<MemoryLevel> levels;
};

struct GpuMemory {
  std::vector<MemoryAllocation> allocations;  // in order of time
  std::vector<GpuMemoryUse> uses;             // by number of the GPU
  uint64_t unmatched_frees = 0;               // of what was allocated before the recording
};

GpuMemory FollowMemory(const Analysis& analysis);

}  // namespace xpu
