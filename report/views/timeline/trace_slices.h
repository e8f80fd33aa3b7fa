// Slices of a trace that no single record is: states of threads, collectives, the critical path.
// They are found first and then written in order of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/gpu_names.h"
#include "report/critical_path/critical_options.h"
#include "report/ranks/collectives.h"
#include "report/views/timeline/trace_names.h"
#include "report/views/timeline/trace_sink.h"
#include "report/views/timeline/trace_tracks.h"

namespace xpu {

// Threads that do not run in a trace: a track of states for each, and an arrow from the thread that
// ends a wait to the one that waited.
class TraceStates {
 public:
  // All must outlive this.
  TraceStates(const Analysis& analysis, CallPaths& paths, const TraceNames& names,
              TraceTracks& tracks, TraceSink& sink)
      : analysis_(analysis), paths_(paths), names_(names), tracks_(tracks), sink_(sink) {}

  // Finds the states. What is between the waits of a thread is one state, running, even if it
  // contains waits below the recorder's minimum.
  void Find();
  // In order of time.
  size_t size() const { return states_.size(); }
  uint64_t TimeOf(size_t at) const { return states_[at].start_ns; }
  void Write(size_t at);

 private:
  enum class Kind : uint8_t { kRunning, kWaiting, kRunnable };
  struct State {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    Owner owner;
    Kind kind = Kind::kRunning;
    const Owned<OffCpuWait>* wait = nullptr;  // nullptr: it runs
  };
  // A thread's states, whose first and last ones only its sums tell.
  struct Thread {
    Owner owner;
    std::vector<const Owned<OffCpuWait>*> waits;
    uint64_t recorded_ns = 0;  // all of its states together
    uint64_t end_ns = 0;       // of the last one; 0: not known
  };

  void AddThread(const Thread& thread);
  void AddWait(const Owner& owner, const Owned<OffCpuWait>& wait);
  void WriteArrow(const State& state, TraceTrack track);
  const TraceName& NameOf(const std::string& name);

  const Analysis& analysis_;
  CallPaths& paths_;
  const TraceNames& names_;
  TraceTracks& tracks_;
  TraceSink& sink_;
  std::vector<State> states_;
  std::map<ThreadKey, uint64_t> begins_;  // when the first state of a thread begins
  std::map<std::string, TraceName> titles_;
};

// The collectives of a job in a trace: a group of tracks for each rank, on which each collective
// lasts from the rank's arrival to its end. An arrow leads from the rank that waited longest to the
// one that it waited for.
class TraceCollectives {
 public:
  // All must outlive this.
  TraceCollectives(const Analysis& analysis, TraceTracks& tracks, TraceSink& sink)
      : analysis_(analysis), tracks_(tracks), sink_(sink), found_(CollectivesOf(analysis)) {}

  // Finds the collectives whose kernels are shown.
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
  const Collectives& found_;
  std::vector<Slice> slices_;
  // Where the first rank's slice of a collective is, and the number of its arrow; 0: none.
  struct First {
    TraceTrack track;
    uint32_t arrow = 0;
    uint64_t arrived_ns = 0;
  };
  std::vector<First> first_;
};

// The path that decides how long steps take, as a track of its own: which thread or GPU work it was
// that everything waited for.
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

  // Finds the path through the steps of `range`; a program without any has no track.
  void Find(const std::vector<StepSeries>& steps, const std::optional<StepRange>& range);

  size_t size() const { return slices_.size(); }
  uint64_t TimeOf(size_t at) const { return slices_[at].start_ns; }
  void Write(size_t at);

 private:
  // All that a thread does without a break is one slice, with its CUDA calls.
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
