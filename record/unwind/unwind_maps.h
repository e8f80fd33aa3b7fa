// The BPF maps that hold the unwind tables (bpf/unwind_layout.h), shared by all BPF programs and
// written through memory, so that a table or a list of mappings needs no system call.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "bpf/unwind_layout.h"
#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/base/background_threads.h"
#include "symbolize/unwind/unwind_table.h"

struct bpf_object;

namespace xpu {

// A BPF array mapped into the recorder's address space.
class MappedArray {
 public:
  MappedArray() = default;
  static Result<MappedArray> Create(const char* name, uint32_t value_bytes, uint32_t entries);
  MappedArray(MappedArray&& other) noexcept;
  MappedArray& operator=(MappedArray&& other) noexcept;
  ~MappedArray();

  int fd() const { return fd_.get(); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  UniqueFd fd_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

// Allocates ranges of `unwind_mappings`. A freed range is reused only after a while, because a BPF
// program may still be searching it.
class MappingRanges {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint64_t kRestNs = 100'000'000;

  // Returns the first of at least `count` entries; kNone if not enough are free.
  uint32_t Take(uint32_t count, uint64_t now_ns);
  void GiveBack(uint32_t first, uint32_t count, uint64_t now_ns);

 private:
  static uint32_t ClassOf(uint32_t count);

  struct Resting {
    uint32_t first;
    uint32_t size_class;
    uint64_t since_ns;
  };
  uint32_t used_ = 0;
  std::vector<uint32_t> free_[32];
  std::deque<Resting> resting_;
};

class UnwindMaps {
 public:
  // The pages of a table in the maps.
  struct PageRange {
    uint64_t first_link_address = 0;
    uint32_t first_page = 0;
    uint32_t page_count = 0;
  };

  static Result<UnwindMaps> Create();

  // Called between a program's open and load: makes it use these maps.
  Status ShareWith(bpf_object* object) const;
  // Called instead if the program walks by frame pointers.
  static Status Shrink(bpf_object* object);

  // Copies a table. kSystem: the maps are full.
  Result<PageRange> Add(const UnwindTable& table);

  // Sets the table of a file, for mappings that the BPF programs see before the recorder does.
  // `device`: st_dev. `link_delta`: link address minus offset in the file. If the map is full, such
  // mappings stay unknown for a while.
  void SetFile(uint64_t device, uint64_t inode, const PageRange& pages, uint64_t link_delta);

  // From now on `mappings`, sorted by address, are the code of `pid`. Fails if the maps are full.
  Status SetCode(uint32_t pid, std::span<const xpu_mapping> mappings, uint64_t now_ns);
  void Forget(uint32_t pid, uint64_t now_ns);

  // Of the rows, rules and pages in use.
  uint64_t bytes_used() const;

 private:
  UnwindMaps() = default;
  Result<UnwindRow*> RoomForRows(uint32_t count);
  uint16_t GlobalRule(const UnwindRule& rule);

  UniqueFd processes_;
  UniqueFd files_;
  MappedArray mappings_;
  MappedArray pages_;
  MappedArray rules_;
  UniqueFd row_blocks_;
  std::vector<MappedArray> blocks_;
  uint32_t pages_used_ = 0;
  uint64_t rows_used_ = 0;
  std::unordered_map<uint64_t, uint16_t> rule_ids_;
  MappingRanges ranges_;
  std::unordered_map<uint32_t, xpu_code> codes_;
  BackgroundThreads publishers_;  // declared last: the threads use the maps
};

}  // namespace xpu
