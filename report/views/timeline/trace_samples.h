// CPU samples. Where the format has no stacks of samples that viewers import (JSON), a sample of a
// clock becomes nested slices that last until the next sample of its thread, and frames that it
// shares with the sample before go on. A sample of an event that does not count time is an instant.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/sampled_events.h"
#include "report/trace/user_probes.h"
#include "report/views/timeline/trace_names.h"
#include "report/views/timeline/trace_sink.h"
#include "report/views/timeline/trace_tracks.h"

namespace xpu {

class TraceSamples {
 public:
  // All must outlive this.
  TraceSamples(const Analysis& analysis, CallPaths& paths, TraceNames& names, TraceTracks& tracks,
               TraceSink& sink)
      : paths_(paths),
        names_(names),
        tracks_(tracks),
        sink_(sink),
        weights_(analysis.model, analysis.shown) {}

  // In order of time.
  void Write(const Owned<CpuSample>& sample);
  // Ends what the last samples began.
  void Finish();
  // Slices that are not written yet.
  uint64_t open_slices() const { return open_slices_; }

 private:
  struct OpenSlice {
    PathId path;
    uint64_t start_ns = 0;
  };
  struct Thread {
    TraceTrack track;
    std::vector<OpenSlice> open;  // outermost first
    uint64_t last_ns = 0;         // the sample before
    uint64_t weight_ns = 0;       // what it stands for
  };
  void Close(Thread& thread, size_t depth, uint64_t time_ns);
  void WriteMoment(const Owned<CpuSample>& sample);

  CallPaths& paths_;
  TraceNames& names_;
  TraceTracks& tracks_;
  TraceSink& sink_;
  std::map<ThreadKey, Thread> threads_;
  const SampleWeights weights_;
  std::unordered_map<std::string_view, TraceName> events_;  // by their names
  std::vector<PathId> path_;
  uint64_t open_slices_ = 0;
};

// Hits of the probes that the user asked for, as moments on the tracks of their threads.
class TraceHits {
 public:
  // All must outlive this.
  TraceHits(const Analysis& analysis, CallPaths& paths, const TraceNames& names,
            TraceTracks& tracks, TraceSink& sink);

  // In order of time.
  const std::vector<const Owned<ProbeHit>*>& hits() const { return hits_; }
  // One of them.
  void Write(const Owned<ProbeHit>& hit);

 private:
  CallPaths& paths_;
  const TraceNames& names_;
  TraceTracks& tracks_;
  TraceSink& sink_;
  const UserProbes probes_;
  std::vector<const Owned<ProbeHit>*> hits_;
  std::unordered_map<const Probe*, TraceName> titles_;
};

}  // namespace xpu
