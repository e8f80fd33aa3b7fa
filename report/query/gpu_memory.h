// Memory that the program allocated for the GPUs: how much at once, from where, and what stayed.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "report/analysis/analysis.h"

namespace xpu {

enum class MemoryView : uint8_t {
  kPeak,    // what was there when most was
  kGrowth,  // what came since the beginning and was there at the end; of --time, where it is given
  kLeft,    // what was there at the end
};

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

// The bytes that a GPU had allocated after an operation.
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

// ---- allocators inside programs: PyTorch's caching allocator
//
// How much they handed out at once of the memory that they have from CUDA, to which code, and what
// they kept unused.
struct AllocatorBlock {
  static constexpr uint32_t kNever = ~uint32_t{0};

  const Owned<AllocatorEvent>* event = nullptr;  // that handed it out
  uint32_t use = 0;                              // in AllocatorMemory::uses
  uint32_t begin = 0;                            // the number of that event
  uint32_t end = kNever;                         // of the one that took it back
};

// The bytes that an allocator had after an event.
struct AllocatorLevel {
  uint64_t time_ns = 0;
  uint64_t allocated_bytes = 0;
  uint64_t reserved_bytes = 0;  // from CUDA, the blocks included; 0: not known
};

// When an allocator asked CUDA for more although enough was unused, in pieces too small.
struct Fragmentation {
  const Owned<AllocatorEvent>* event = nullptr;  // for which block; nullptr: it never did
  uint64_t unused_bytes = 0;
  uint64_t reserved_bytes = 0;  // before it asked
  uint64_t added_bytes = 0;     // at all such times together
};

// The memory of one process on one GPU.
struct AllocatorUse {
  InstanceId instance;
  uint32_t pid = 0;
  uint32_t gpu = 0;
  uint64_t count = 0;        // blocks handed out
  uint32_t first_event = 0;  // the number, as AllocatorBlock::begin
  // Within --time, the first time of each:
  uint64_t peak_bytes = 0;
  uint64_t peak_ns = 0;
  uint32_t peak_event = 0;
  uint64_t reserved_peak_bytes = 0;
  uint64_t allocated_then_bytes = 0;
  uint64_t earlier_bytes = 0;  // of the peak, what was handed out before the recording
  uint64_t left_bytes = 0;     // of blocks that were handed out meanwhile, at the end
  uint64_t left_count = 0;
  AllocatorLevel last;
  Fragmentation worst;  // the largest part that was unused
  std::vector<AllocatorLevel> levels;
};

class AllocatorMemory {
 public:
  explicit AllocatorMemory(const Analysis& analysis);

  const std::vector<AllocatorBlock>& blocks() const { return blocks_; }  // in order of time
  const std::vector<AllocatorUse>& uses() const { return uses_; }        // as they began
  bool empty() const { return uses_.empty(); }
  // Whether the view shows a block; its use is of a known process, GPU and time.
  bool IsIn(MemoryView view, const AllocatorBlock& block) const;
  // An allocator's memory from CUDA: it is not counted beside its blocks.
  bool IsReserve(const MemoryOperation& operation) const;

 private:
  void Take(const Owned<AllocatorEvent>& event);
  void HandOut(const Owned<AllocatorEvent>& event, uint32_t use, AllocatorLevel& level);
  void TakeBack(const AllocatorEvent& event, uint32_t use, AllocatorLevel& level);
  void Raise(AllocatorUse& use, const AllocatorLevel& level) const;
  void SumUp();
  uint32_t UseOf(const AllocatorEvent& event);
  bool IsDuring(uint64_t time_ns) const { return time_ns >= from_ns_ && time_ns < to_ns_; }

  const Analysis& analysis_;
  const uint64_t from_ns_;
  const uint64_t to_ns_;
  std::vector<AllocatorBlock> blocks_;
  std::vector<AllocatorUse> uses_;
  std::unordered_map<uint64_t, std::unordered_map<uint32_t, uint32_t>> use_of_;  // instance, device
  std::vector<std::unordered_map<uint64_t, uint32_t>> live_;       // by use: block by address
  std::unordered_map<uint64_t, std::vector<uint64_t>> addresses_;  // by instance; ascending
  uint32_t number_ = 0;                                            // of the event
  uint32_t first_ = 0;                                             // event from from_ns_ on
  uint32_t end_ = 0;                                               // first event after to_ns_
};

}  // namespace xpu
