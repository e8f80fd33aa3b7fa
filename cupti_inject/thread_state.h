// What the library knows of each of the program's threads.
#pragma once

#include <cstdint>

#include <sys/syscall.h>
#include <unistd.h>

#include "cupti_inject/call_tracker.h"
#include "cupti_inject/capture_gate.h"
#include "cupti_inject/presence.h"
#include "cupti_inject/stack_memory.h"

namespace xpu::inject {

// The types of the graph nodes that are being made, by their graphs: a node that holds a child
// graph is begun before the nodes of that graph, and finished after them. Only the beginning tells
// a type.
struct StartingNodes {
  static constexpr uint32_t kMax = 4;

  void Set(const void* graph, uint32_t type) {
    uint32_t at = 0;
    while (at < kMax && graphs[at] != graph) ++at;
    if (at == kMax) at = next++ % kMax;
    graphs[at] = graph;
    types[at] = type;
  }
  uint32_t TypeIn(const void* graph) const {
    for (uint32_t i = 0; i < kMax; ++i) {
      if (graphs[i] == graph) return types[i];
    }
    return 0;
  }

  const void* graphs[kMax];
  uint32_t types[kMax];
  uint32_t next;
};

// How many ranges the thread has open in each of the first domains.
struct RangeLevels {
  static constexpr uint32_t kDomains = 8;
  static constexpr uint32_t kLevels = 16;
  uint16_t open[kDomains];
  uint16_t left_out[kDomains];  // of the first levels those that began in a pause
};

struct ThreadState {
  CallTracker tracker;
  StartingNodes starting;
  ThreadStack stack;
  RangeLevels ranges;
  OpenCapture capture;
  uint32_t tid;            // 0: not asked yet
  uint32_t replay;         // of GraphIntervals
  uint32_t wait_delay_ns;  // of the wait that it is in, from the call on: our own work
  uint32_t session;        // that this is of (Injection::number): a later one begins anew
  ThreadSlot* slot;        // nullptr: it has none yet

  // What is left of an earlier session is void: the calls that the thread was in then, what it
  // knew of its stack. How deep its ranges are open the program gets to see, so that stays.
  void BeginSession(uint32_t number) {
    tracker = {};
    starting = {};
    stack = {};
    wait_delay_ns = 0;
    replay = 0;
    session = number;
  }
};

// Initial-exec: no allocation at a thread's first use.
inline constinit thread_local ThreadState t_thread __attribute__((tls_model("initial-exec"))) = {};

inline ThreadState& CurrentThread() { return t_thread; }

inline uint32_t CurrentTid(ThreadState& thread) {
  if (thread.tid == 0) thread.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  return thread.tid;
}

}  // namespace xpu::inject
