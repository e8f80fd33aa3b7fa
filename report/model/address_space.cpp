#include "report/model/address_space.h"

#include <algorithm>
#include <limits>

#include "format/base/check.h"

namespace xpu {
namespace {

// Mappings and spaces that one look-up goes through: a hostile file may pile up any number of them.
constexpr int kMaxSteps = 4096;

uint64_t EndOf(const Mapping& mapping) {
  const uint64_t end = mapping.start_address + mapping.size_bytes;
  return end < mapping.start_address ? std::numeric_limits<uint64_t>::max() : end;
}

}  // namespace

SpaceId AddressSpaces::Create(SpaceId parent, uint64_t time_ns) {
  spaces_.push_back({.parent = parent, .copied_ns = time_ns, .by_start = {}, .end_so_far = {}});
  return SpaceId{static_cast<uint32_t>(spaces_.size())};
}

void AddressSpaces::Map(SpaceId space, uint32_t index) {
  spaces_.at(space.value - 1).by_start.push_back(index);
}

bool AddressSpaces::Holds(SpaceId space, uint32_t index) const {
  const Mapping& wanted = mappings_[index];
  const std::vector<uint32_t>& own = spaces_.at(space.value - 1).by_start;
  for (auto i = own.rbegin(); i != own.rend(); ++i) {
    const Mapping& known = mappings_[*i];
    if (known.start_address != wanted.start_address) continue;
    return known.size_bytes == wanted.size_bytes && known.file_offset == wanted.file_offset &&
           known.inode == wanted.inode;
  }
  return false;
}

void AddressSpaces::Finish() {
  for (Space& space : spaces_) {
    std::stable_sort(space.by_start.begin(), space.by_start.end(), [&](uint32_t a, uint32_t b) {
      return mappings_[a].start_address < mappings_[b].start_address;
    });
    uint64_t end = 0;
    space.end_so_far.clear();
    for (const uint32_t index : space.by_start) {
      end = std::max(end, EndOf(mappings_[index]));
      space.end_so_far.push_back(end);
    }
  }
}

template <typename Visit>
void AddressSpaces::ForEachOver(const Space& space, uint64_t address, int& steps,
                                Visit&& visit) const {
  XPU_CHECK(space.end_so_far.size() == space.by_start.size());
  const auto after = std::upper_bound(
      space.by_start.begin(), space.by_start.end(), address,
      [&](uint64_t value, uint32_t index) { return value < mappings_[index].start_address; });
  for (size_t i = static_cast<size_t>(after - space.by_start.begin()); i > 0 && steps > 0; --i) {
    if (space.end_so_far[i - 1] <= address) return;
    --steps;
    const Mapping& mapping = mappings_[space.by_start[i - 1]];
    if (EndOf(mapping) > address) visit(mapping);
  }
}

AddressSpaces::Found AddressSpaces::Find(SpaceId id, uint64_t address, uint64_t time_ns) const {
  const Mapping* newest = nullptr;    // not after time_ns
  const Mapping* earliest = nullptr;  // after it
  int seen = 0;
  int steps = kMaxSteps;
  const auto count = [&](Found found) {
    steps_ += static_cast<uint64_t>(kMaxSteps - steps);
    return found;
  };
  for (; id && steps > 0; id = spaces_[id.value - 1].parent) {
    --steps;
    const Space& space = spaces_.at(id.value - 1);
    ForEachOver(space, address, steps, [&](const Mapping& mapping) {
      ++seen;
      // Of two mappings of one time the later one in the file (visited first) counts.
      if (mapping.time_ns <= time_ns) {
        if (newest == nullptr || mapping.time_ns > newest->time_ns) newest = &mapping;
      } else if (earliest == nullptr || mapping.time_ns < earliest->time_ns) {
        earliest = &mapping;
      }
    });
    if (newest != nullptr && seen == 1) return count({newest, !space.parent});
    if (newest != nullptr) return count({newest, false});
    // What the parent mapped after the copy is not in the copy.
    time_ns = std::min(time_ns, space.copied_ns);
    if (space.parent && earliest != nullptr) seen = 2;
  }
  return count({earliest, seen <= 1});
}

std::vector<uint64_t> AddressSpaces::ChangesOf(SpaceId space) const {
  std::vector<uint64_t> times;
  for (const uint32_t index : spaces_.at(space.value - 1).by_start) {
    times.push_back(mappings_[index].time_ns);
  }
  return times;
}

}  // namespace xpu
