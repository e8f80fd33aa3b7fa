#include "report/query/gpu_memory.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "format/base/saturated.h"

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

constexpr uint64_t Magnitude(int64_t bytes) {
  return bytes < 0 ? uint64_t{0} - static_cast<uint64_t>(bytes) : static_cast<uint64_t>(bytes);
}

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

AllocatorMemory::AllocatorMemory(const Analysis& analysis)
    : analysis_(analysis), from_ns_(analysis.shown.from_ns), to_ns_(analysis.shown.to_ns) {
  for (const Owned<AllocatorEvent>& event : analysis.AllocatorEvents()) {
    if (number_ == AllocatorBlock::kNever - 1) break;
    Take(event);
    ++number_;
    if (event.time_ns < from_ns_) first_ = number_;
    if (event.time_ns < to_ns_) end_ = number_;
  }
  SumUp();
  for (auto& [instance, addresses] : addresses_) {
    std::sort(addresses.begin(), addresses.end());
    addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  }
  live_.clear();
}

uint32_t AllocatorMemory::UseOf(const AllocatorEvent& event) {
  const auto next = static_cast<uint32_t>(uses_.size());
  const auto [found, is_new] = use_of_[event.instance.value].try_emplace(event.device_id, next);
  if (is_new) {
    AllocatorUse& use = uses_.emplace_back();
    use.instance = event.instance;
    use.pid = event.pid;
    use.gpu = analysis_.gpus.Of(event.instance, event.device_id).number;
    live_.emplace_back();
  }
  return found->second;
}

void AllocatorMemory::Take(const Owned<AllocatorEvent>& event) {
  const uint32_t number = UseOf(event);
  AllocatorUse& use = uses_[number];
  AllocatorLevel level = use.last;
  level.time_ns = event.time_ns;
  if (event.size_bytes > 0) {
    HandOut(event, number, level);
  } else {
    TakeBack(event, number, level);
  }
  if (event.has_totals) {
    level.allocated_bytes = event.allocated_bytes;
    level.reserved_bytes = event.reserved_bytes;
  }
  if (event.size_bytes > 0 && event.has_totals && !use.levels.empty()) {
    const uint64_t unused_bytes =
        use.last.reserved_bytes - std::min(use.last.reserved_bytes, use.last.allocated_bytes);
    const bool has_grown = level.reserved_bytes > use.last.reserved_bytes;
    if (has_grown && unused_bytes >= Magnitude(event.size_bytes) && IsDuring(event.time_ns)) {
      Fragmentation& worst = use.worst;
      worst.added_bytes =
          AddSaturated(worst.added_bytes, level.reserved_bytes - use.last.reserved_bytes);
      if (worst.event == nullptr || unused_bytes > worst.unused_bytes) {
        worst.event = &event;
        worst.unused_bytes = unused_bytes;
        worst.reserved_bytes = use.last.reserved_bytes;
      }
    }
  }
  if (use.levels.empty()) use.first_event = number_;
  use.last = level;
  use.levels.push_back(level);
  if (IsDuring(event.time_ns)) Raise(use, level);
}

void AllocatorMemory::Raise(AllocatorUse& use, const AllocatorLevel& level) const {
  if (level.allocated_bytes > use.peak_bytes) {
    use.peak_bytes = level.allocated_bytes;
    use.peak_ns = level.time_ns;
    use.peak_event = number_;
  }
  if (level.reserved_bytes > use.reserved_peak_bytes) {
    use.reserved_peak_bytes = level.reserved_bytes;
    use.allocated_then_bytes = level.allocated_bytes;
  }
}

void AllocatorMemory::HandOut(const Owned<AllocatorEvent>& event, uint32_t use,
                              AllocatorLevel& level) {
  level.allocated_bytes = AddSaturated(level.allocated_bytes, Magnitude(event.size_bytes));
  addresses_[event.instance.value].push_back(event.address);
  const auto block = static_cast<uint32_t>(blocks_.size());
  const auto [at, is_new] = live_[use].try_emplace(event.address, block);
  if (!is_new) {  // what took it back was lost
    blocks_[at->second].end = number_;
    at->second = block;
  }
  blocks_.push_back({.event = &event, .use = use, .begin = number_});
  if (IsDuring(event.time_ns)) ++uses_[use].count;
}

void AllocatorMemory::TakeBack(const AllocatorEvent& event, uint32_t use, AllocatorLevel& level) {
  level.allocated_bytes -= std::min(level.allocated_bytes, Magnitude(event.size_bytes));
  const auto at = live_[use].find(event.address);
  if (at == live_[use].end()) return;  // of before the recording
  blocks_[at->second].end = number_;
  live_[use].erase(at);
}

void AllocatorMemory::SumUp() {
  std::vector<uint64_t> known(uses_.size());  // of the peak
  for (const AllocatorBlock& block : blocks_) {
    AllocatorUse& use = uses_[block.use];
    const uint64_t bytes = Magnitude(block.event->size_bytes);
    if (IsIn(MemoryView::kPeak, block)) known[block.use] = AddSaturated(known[block.use], bytes);
    if (!IsIn(MemoryView::kGrowth, block)) continue;
    ++use.left_count;
    use.left_bytes = AddSaturated(use.left_bytes, bytes);
  }
  for (size_t i = 0; i < uses_.size(); ++i) {
    uses_[i].earlier_bytes = uses_[i].peak_bytes - std::min(uses_[i].peak_bytes, known[i]);
  }
}

bool AllocatorMemory::IsIn(MemoryView view, const AllocatorBlock& block) const {
  const AllocatorUse& use = uses_[block.use];
  switch (view) {
    case MemoryView::kPeak:
      return use.peak_bytes > 0 && block.begin <= use.peak_event && block.end > use.peak_event;
    case MemoryView::kGrowth:
      return block.begin >= first_ && block.begin < end_ && block.end >= end_;
    case MemoryView::kLeft:
      return block.begin < end_ && block.end >= end_;
  }
  return false;
}

bool AllocatorMemory::IsReserve(const MemoryOperation& operation) const {
  const auto found = addresses_.find(operation.instance.value);
  if (found == addresses_.end()) return false;
  const auto first =
      std::lower_bound(found->second.begin(), found->second.end(), operation.address);
  return first != found->second.end() && *first - operation.address < operation.size_bytes;
}

}  // namespace xpu
