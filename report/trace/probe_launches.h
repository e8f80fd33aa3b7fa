// Launches as probes on the functions of the CUDA libraries see them: entries and returns of
// threads, without any id. Which call is within which, and which call of the injected library they
// are, is determined by thread and time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "report/model/loaded_events.h"
#include "report/trace/launch.h"

namespace xpu {

// The API calls of each thread, to find the one that something without an id happened in.
class CallsByThread {
 public:
  // Uses the `launches` that have a call. Pids and tids are the recorder's.
  explicit CallsByThread(std::span<const Launch> launches);

  // The time to look for: an instant, or an interval when its end is known.
  struct Moment {
    uint32_t pid = 0;
    uint32_t tid = 0;
    uint64_t start_ns = 0;
    std::optional<uint64_t> end_ns;
    uint64_t next_start_ns = UINT64_MAX;  // of the next such thing on the thread
  };
  // The call that the moment lies in: the probe of a driver's function lies within the call of the
  // runtime around it. Or the call that lies in it, or begins less than kToleranceNs later: the
  // probe at the entry of the very function that CUPTI reports comes before the call.
  std::optional<uint32_t> Find(const Moment& moment) const;

 private:
  std::span<const Launch> launches_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> calls_;  // by (pid, tid), by time
};

// One call into CUDA: a function of the runtime and the functions that it calls are one.
struct ProbeCall {
  uint32_t probe = 0;  // of the outermost function
  uint32_t entry = 0;  // LoadedEvents::probe_hits
  uint32_t pid = 0;
  uint32_t tid = 0;
  bool has_return = false;
  int32_t return_value = 0;
  uint64_t start_ns = 0;
  // If the return of a call was not seen: the end of the calls within it, or start_ns.
  uint64_t end_ns = 0;
};

// In order of (pid, tid, start). Probes that the user asked for are not launches.
std::vector<ProbeCall> NestProbeHits(const LoadedEvents& events);

// `launches` in order of their ids, with the recorder's pids and tids. A probed call that lies
// within one of them or around it is that one, and gives it its stack when it has none
// (`gives_stacks`, else nothing is matched by nesting); the others are added after, by time.
void AddProbeLaunches(const LoadedEvents& events, LaunchList& launches, bool gives_stacks = true);

}  // namespace xpu
