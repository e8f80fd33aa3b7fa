// Launches as probes on the functions of the CUDA libraries see them: entries and returns of
// threads, without any id. Which call is within which, and which call of the injected library they
// are, is told by thread and time.
#pragma once

#include <cstdint>
#include <vector>

#include "report/model/loaded_events.h"
#include "report/trace/launch.h"

namespace xpu {

// One call into CUDA: a function of the runtime and the functions that it calls are one.
struct ProbeCall {
  uint32_t probe = 0;  // of the outermost function
  uint32_t entry = 0;  // LoadedEvents::probe_hits
  uint32_t pid = 0;
  uint32_t tid = 0;
  bool has_return = false;
  int32_t return_value = 0;
  uint64_t start_ns = 0;
  // Of a call whose return was not seen: that of the calls within it, or start_ns.
  uint64_t end_ns = 0;
};

// By (pid, tid, start). Probes that the user asked for are no launches.
std::vector<ProbeCall> NestProbeHits(const LoadedEvents& events);

// `launches` in order of their ids, with the recorder's pids and tids. A probed call that lies
// within one of them or around it is that one, and gives it its stack when it has none
// (`gives_stacks`, else nothing is matched by nesting); the others are added behind, by time.
void AddProbeLaunches(const LoadedEvents& events, LaunchList& launches, bool gives_stacks = true);

}  // namespace xpu
