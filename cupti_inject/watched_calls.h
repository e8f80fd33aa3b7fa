// Which calls of the CUDA API we watch: those that make the GPU work, wait for it, or put such work
// into a CUDA graph.
#pragma once

#include <cstdint>

#include "cupti_inject/cupti_abi.h"

namespace xpu::inject {

// `domain` is cupti::kDomainDriver or kDomainRuntime, `name` what cuptiGetCallbackName gives, with
// or without its version suffix. Callback ids mean different functions in different CUDA versions,
// names do not.
bool IsWatched(uint32_t domain, const char* name);
// Whether it allocates or frees memory that the GPU can reach: watched on request.
bool AllocatesMemory(uint32_t domain, const char* name);
// cuProfilerStart and cudaProfilerStart, and their counterparts.
bool StartsProfiler(uint32_t domain, const char* name);
bool StopsProfiler(uint32_t domain, const char* name);

// Some of the driver's and the runtime's calls, by their callback ids.
class CallSet {
 public:
  static constexpr uint32_t kMaxId = 4096;

  void Add(uint32_t domain, uint32_t id) {
    if (IsKnown(domain, id)) bits_[domain - 1][id / 64] |= uint64_t{1} << id % 64;
  }
  bool Has(uint32_t domain, uint32_t id) const {
    return IsKnown(domain, id) && (bits_[domain - 1][id / 64] >> id % 64 & 1) != 0;
  }

 private:
  static constexpr bool IsKnown(uint32_t domain, uint32_t id) {
    return (domain == cupti::kDomainDriver || domain == cupti::kDomainRuntime) && id < kMaxId;
  }
  uint64_t bits_[2][kMaxId / 64] = {};
};

}  // namespace xpu::inject
