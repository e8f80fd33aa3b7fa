#include "report/query/gpu_memory.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "format/base/saturated.h"
#include "report/analysis/call_tree.h"

namespace xpu {
namespace {

constexpr uint32_t kAllocation = 1;
constexpr uint32_t kRelease = 2;

class Follower {
 public:
  explicit Follower(const Analysis& analysis) : analysis_(analysis) {
    const LaunchList& launches = analysis.correlation.launches;
    for (const MemoryOperation& operation : analysis.MemoryOperations()) {
      if (operation.operation == kAllocation) {
        calls_.try_emplace({operation.instance, operation.correlation_id}, GpuWork::kNoLaunch);
      }
    }
    for (const uint32_t i : analysis.Launches().places()) {
      const auto call = calls_.find({launches[i].instance, launches[i].correlation_id});
      if (call != calls_.end()) call->second = i;
    }
  }

  GpuMemory Follow() {
    for (const MemoryOperation& operation : analysis_.MemoryOperations()) {
      if (operation.operation == kAllocation) Allocate(operation);
      if (operation.operation == kRelease) Release(operation);
    }
    for (auto& [gpu, use] : uses_) memory_.uses.push_back(std::move(use));
    for (MemoryAllocation& allocation : memory_.allocations) MarkPeak(allocation);
    return std::move(memory_);
  }

 private:
  using Place = std::tuple<InstanceId, uint64_t>;

  GpuMemoryUse& UseOf(uint32_t gpu) {
    GpuMemoryUse& use = uses_[gpu];
    use.gpu = gpu;
    return use;
  }
  uint64_t TimeOf(const MemoryOperation& operation) const {
    return analysis_.clocks.Of(operation.instance).ToMonotonic(operation.time_ns);
  }

  void Allocate(const MemoryOperation& operation) {
    MemoryAllocation allocation;
    allocation.operation = &operation;
    allocation.gpu = analysis_.gpus.Of(operation.instance, operation.device_id).number;
    allocation.launch = calls_[{operation.instance, operation.correlation_id}];
    allocation.start_ns = TimeOf(operation);
    live_[{operation.instance, operation.address}] = memory_.allocations.size();
    memory_.allocations.push_back(allocation);
    GpuMemoryUse& use = UseOf(allocation.gpu);
    ++use.count;
    if (!IsOfGpu(operation.memory_kind)) return;
    uint64_t& now = now_[allocation.gpu];
    now = AddSaturated(now, operation.size_bytes);
    use.levels.push_back({allocation.start_ns, now});
    if (now <= use.peak_bytes) return;
    use.peak_bytes = now;
    use.peak_ns = allocation.start_ns;
  }

  void Release(const MemoryOperation& operation) {
    const auto live = live_.find({operation.instance, operation.address});
    if (live == live_.end()) {
      ++memory_.unmatched_frees;
      return;
    }
    MemoryAllocation& allocation = memory_.allocations[live->second];
    live_.erase(live);
    allocation.end_ns = std::max(allocation.start_ns, TimeOf(operation));
    if (!IsOfGpu(allocation.operation->memory_kind)) return;
    uint64_t& now = now_[allocation.gpu];
    now -= std::min(now, allocation.operation->size_bytes);
    UseOf(allocation.gpu).levels.push_back({allocation.end_ns, now});
  }

  void MarkPeak(MemoryAllocation& allocation) {
    GpuMemoryUse& use =
        *std::lower_bound(memory_.uses.begin(), memory_.uses.end(), allocation.gpu,
                          [](const GpuMemoryUse& one, uint32_t gpu) { return one.gpu < gpu; });
    if (allocation.end_ns == 0) {
      ++use.left_count;
      use.left_bytes = AddSaturated(use.left_bytes, allocation.operation->size_bytes);
    }
    allocation.at_peak = IsOfGpu(allocation.operation->memory_kind) &&
                         allocation.start_ns <= use.peak_ns &&
                         (allocation.end_ns == 0 || allocation.end_ns > use.peak_ns);
  }

  const Analysis& analysis_;
  GpuMemory memory_;
  std::map<std::pair<InstanceId, uint32_t>, uint32_t> calls_;
  std::map<Place, size_t> live_;
  std::map<uint32_t, uint64_t> now_;
  std::map<uint32_t, GpuMemoryUse> uses_;
};

}  // namespace

std::string_view MemoryKindText(uint32_t memory_kind) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "unknown", "pageable", "pinned",        "device",
      "array",   "managed",  "device static", "managed static"};
  return memory_kind < kNames.size() ? kNames[memory_kind] : kNames[0];
}

bool IsPageable(uint32_t memory_kind) { return memory_kind == 1; }

bool IsOfHost(uint32_t memory_kind) { return memory_kind == 1 || memory_kind == 2; }

bool IsOfGpu(uint32_t memory_kind) { return memory_kind >= 3; }

GpuMemory FollowMemory(const Analysis& analysis) { return Follower(analysis).Follow(); }

}  // namespace xpu
