// What a trace shows of threads that do not run: a track of states for each, and an arrow from the
// thread that ends a wait to the one that waited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/views/timeline/trace_names.h"
#include "report/views/timeline/trace_sink.h"
#include "report/views/timeline/trace_tracks.h"

namespace xpu {

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

}  // namespace xpu
