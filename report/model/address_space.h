// What was mapped where and when: (address space, address, time) to a mapping.
#pragma once

#include <cstdint>
#include <vector>

#include "format/base/ids.h"
#include "format/events.h"

namespace xpu {

// An address space lives from an exec (or fork, or the start of the recording) to the next.
using SpaceId = Id<struct SpaceTag, uint32_t>;

class AddressSpaces {
 public:
  // `mappings` in order of time; must outlive this.
  explicit AddressSpaces(const std::vector<Mapping>& mappings) : mappings_(mappings) {}

  // `parent`: the space this one is a copy of, made at `time_ns`; none after an exec.
  SpaceId Create(SpaceId parent, uint64_t time_ns);
  // mappings[index] goes into `space`. In order of time.
  void Map(SpaceId space, uint32_t index);
  // Whether the newest mapping at this start address in `space` says the same as mappings[index].
  bool Holds(SpaceId space, uint32_t index) const;
  // After the last Map, before the first Find.
  void Finish();

  size_t size() const { return spaces_.size(); }
  // The space that this one is a copy of, and when it was made; none: of none.
  SpaceId ParentOf(SpaceId space) const { return spaces_[space.value - 1].parent; }
  uint64_t CopiedNs(SpaceId space) const { return spaces_[space.value - 1].copied_ns; }

  struct Found {
    const Mapping* mapping = nullptr;  // nullptr: nothing is known at this address
    bool at_any_time = false;          // the answer is the same for every time
  };
  // The newest mapping over `address` at `time_ns`. Munmap is not recorded, so a mapping lasts
  // until another covers it; processes that were there first had their mappings read a little
  // after their first samples, so when all mappings are later than `time_ns` the earliest counts.
  Found Find(SpaceId space, uint64_t address, uint64_t time_ns) const;
  // Mappings and spaces that Find has looked at so far.
  uint64_t steps() const { return steps_; }
  // When something was mapped into the space itself, in no order.
  std::vector<uint64_t> ChangesOf(SpaceId space) const;

 private:
  struct Space {
    SpaceId parent;
    uint64_t copied_ns = 0;
    std::vector<uint32_t> by_start;    // indexes, sorted by start address, then time
    std::vector<uint64_t> end_so_far;  // the largest end of by_start[0..i]
  };

  // Calls visit(mapping) for each mapping over `address`, in no order, until `steps` are used up.
  template <typename Visit>
  void ForEachOver(const Space& space, uint64_t address, int& steps, Visit&& visit) const;

  const std::vector<Mapping>& mappings_;
  std::vector<Space> spaces_;  // by id - 1
  mutable uint64_t steps_ = 0;
};

}  // namespace xpu
