// The collectives of a job in a trace: a group of tracks for each rank, on which each collective
// lasts from the rank's arrival to its end. An arrow leads from the rank that waited longest to the
// one that it waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/ranks/collectives.h"
#include "report/views/timeline/trace_sink.h"
#include "report/views/timeline/trace_tracks.h"

namespace xpu {

class TraceCollectives {
 public:
  // All must outlive this.
  TraceCollectives(const Analysis& analysis, TraceTracks& tracks, TraceSink& sink)
      : analysis_(analysis), tracks_(tracks), sink_(sink) {}

  // Those whose kernels are shown.
  void Find();
  // In order of time.
  size_t size() const { return slices_.size(); }
  uint64_t TimeOf(size_t at) const { return PartOf(slices_[at]).arrived_ns; }
  // `arrows`: numbered so far.
  void Write(size_t at, uint32_t& arrows);

 private:
  struct Slice {
    size_t collective = 0;  // in found_.all
    size_t part = 0;
  };
  const CollectivePart& PartOf(const Slice& slice) const {
    return found_.all[slice.collective].parts[slice.part];
  }

  const Analysis& analysis_;
  TraceTracks& tracks_;
  TraceSink& sink_;
  Collectives found_;
  std::vector<Slice> slices_;
  // By collective: where the first rank's slice is, and the number of its arrow; 0: none.
  struct First {
    TraceTrack track;
    uint32_t arrow = 0;
    uint64_t arrived_ns = 0;
  };
  std::vector<First> first_;
};

}  // namespace xpu
