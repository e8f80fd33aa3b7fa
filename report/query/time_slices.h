// A call tree by slices of time: what of each path belongs to which slice, such as a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "report/analysis/call_tree.h"
#include "report/base/flat_map.h"

namespace xpu {

// A stretch of the time of a process.
struct TimeSlice {
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC
  uint64_t end_ns = 0;
  uint32_t number = 0;
};
using TimeSlices = std::vector<TimeSlice>;  // in order, none in another

// Time that is added to a call tree, by slice. An event is in the slice in which it began; GPU work
// in that of the call that launched it.
class SlicedTimes {
 public:
  // With more parts, or slices, neighboring slices become one; where one has too many, none is
  // kept.
  struct Limits {
    size_t parts = size_t{1} << 20;
    uint32_t slices = 1 << 16;
  };

  // `of_process`: by pid, which of `all` those of the process are; of any other the first ones.
  // Numbers are below `count`.
  SlicedTimes(std::vector<TimeSlices> all, std::map<uint32_t, size_t> of_process, uint32_t count,
              Limits limits);
  SlicedTimes(std::vector<TimeSlices> all, std::map<uint32_t, size_t> of_process, uint32_t count)
      : SlicedTimes(std::move(all), std::move(of_process), count, Limits()) {}

  // Slices for all processes; GPU work is in the slices in which it ran, whenever it was launched.
  static SlicedTimes ByTime(TimeSlices slices, Limits limits);
  bool is_by_time() const { return is_by_time_; }

  // Time outside all slices is left out.
  void Add(uint32_t pid, uint64_t time_ns, PathId path, uint64_t ns, uint64_t count);
  // Divides what took that time over the slices.
  void AddSpan(uint64_t begin_ns, uint64_t ns, PathId path);
  void Multiply(uint64_t times);

  struct Part {
    uint32_t slice = 0;  // a number / each()
    PathId path;
    uint64_t ns = 0;
    uint64_t count = 0;
  };
  // In order of slices and paths.
  std::vector<Part> Parts() const;
  // How many numbers are one slice.
  uint32_t each() const { return uint32_t{1} << shift_; }

 private:
  using PartId = Id<struct PartTag, uint32_t>;

  void AddPart(const Part& part);
  void JoinNeighbors();

  const std::vector<TimeSlices> all_;
  const std::map<uint32_t, size_t> of_process_;
  const Limits limits_;
  uint32_t shift_ = 0;
  bool is_full_ = false;
  bool is_by_time_ = false;
  std::vector<Part> parts_;  // by id - 1
  FlatMap<PartId> ids_;      // by slice and path
};

}  // namespace xpu
