// The path that decides how long steps take, as a track of its own: which thread or GPU work it was
// that everything waited for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/analysis/call_paths.h"
#include "report/analysis/gpu_names.h"
#include "report/critical_path/critical_options.h"
#include "report/views/timeline/trace_sink.h"
#include "report/views/timeline/trace_tracks.h"

namespace xpu {

class TraceCritical {
 public:
  // All must outlive this.
  TraceCritical(Analysis& analysis, CallPaths& paths, KernelNames kernel_names, TraceTracks& tracks,
                TraceSink& sink)
      : analysis_(analysis),
        paths_(paths),
        gpu_names_(analysis, kernel_names),
        tracks_(tracks),
        sink_(sink) {}

  // Of steps, those of `range`; a program without any has no track.
  void Find(const std::vector<StepSeries>& steps, const std::optional<StepRange>& range);

  size_t size() const { return slices_.size(); }
  uint64_t TimeOf(size_t at) const { return slices_[at].start_ns; }
  void Write(size_t at);

 private:
  // What a thread does without a break is one, with its CUDA calls.
  struct Slice {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint64_t assumed_ns = 0;
    std::string name;
  };

  Analysis& analysis_;
  CallPaths& paths_;
  const GpuNames gpu_names_;
  TraceTracks& tracks_;
  TraceSink& sink_;
  Owner thread_;
  TraceTrack track_;  // tid 0: nothing was written yet
  std::vector<Slice> slices_;
  std::map<std::string, TraceName> names_;  // a category of its own: kernels are counted by theirs
};

}  // namespace xpu
