#include "report/query/time_slices.h"

#include <algorithm>
#include <tuple>

#include "format/base/saturated.h"
#include "report/base/intervals.h"

namespace xpu {

SlicedTimes::SlicedTimes(std::vector<TimeSlices> all, std::map<uint32_t, size_t> of_process,
                         uint32_t count, Limits limits)
    : all_(std::move(all)), of_process_(std::move(of_process)), limits_(limits) {
  while (count > 0 && (count - 1) >> shift_ >= limits.slices) ++shift_;
}

void SlicedTimes::Add(uint32_t pid, uint64_t time_ns, PathId path, uint64_t ns, uint64_t count) {
  if (is_full_ || all_.empty()) return;
  const auto own = of_process_.find(pid);
  const TimeSlices& slices = all_[own == of_process_.end() ? 0 : own->second];
  const TimeSlice* const slice = FindAt(slices, time_ns);
  if (slice == nullptr) return;
  AddPart({slice->number >> shift_, path, ns, count});
  if (parts_.size() > limits_.parts) JoinNeighbors();
}

SlicedTimes SlicedTimes::ByTime(TimeSlices slices, Limits limits) {
  const auto count = static_cast<uint32_t>(slices.size());
  SlicedTimes made({std::move(slices)}, {}, count, limits);
  made.is_by_time_ = true;
  return made;
}

void SlicedTimes::AddSpan(uint64_t begin_ns, uint64_t ns, PathId path) {
  if (is_full_ || all_.empty()) return;
  uint64_t count = 1;  // in the first one
  const auto add = [&](const TimeSlice& slice, uint64_t from_ns, uint64_t to_ns) {
    if (is_full_) return;
    AddPart({slice.number >> shift_, path, to_ns - from_ns, std::exchange(count, 0)});
    if (parts_.size() > limits_.parts) JoinNeighbors();
  };
  ForEachOverlap(all_.front(), begin_ns, AddSaturated(begin_ns, ns), add);
}

void SlicedTimes::AddPart(const Part& part) {
  PartId& id = ids_[uint64_t{part.slice} << 32 | part.path.value];
  if (!id) {
    parts_.push_back(part);
    id = PartId{static_cast<uint32_t>(parts_.size())};
    return;
  }
  Part& known = parts_[id.value - 1];
  known.ns = AddSaturated(known.ns, part.ns);
  known.count = AddSaturated(known.count, part.count);
}

// Until half of the room is free, so that this happens a few times only.
void SlicedTimes::JoinNeighbors() {
  while (parts_.size() > limits_.parts / 2) {
    const bool is_one =
        std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.slice == 0; });
    if (is_one) {
      is_full_ = true;
      parts_ = {};
      ids_ = {};
      return;
    }
    ++shift_;
    ids_ = {};
    for (Part part : std::exchange(parts_, {})) {
      part.slice >>= 1;
      AddPart(part);
    }
  }
}

void SlicedTimes::Multiply(uint64_t times) {
  for (Part& part : parts_) {
    part.ns = MultiplySaturated(part.ns, times);
    part.count = MultiplySaturated(part.count, times);
  }
}

std::vector<SlicedTimes::Part> SlicedTimes::Parts() const {
  std::vector<Part> parts = parts_;
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::tie(a.slice, a.path) < std::tie(b.slice, b.path);
  });
  return parts;
}

}  // namespace xpu
