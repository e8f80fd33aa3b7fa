// The injected library's one state object and the life of the library in a process:
//
//   Connect    (whichever of CUDA and NVTX comes first) connection string -> ring
//   Start      (InitializeInjection, inside the program's cuInit) CUPTI
//   callbacks  on the program's threads, buffers on CUPTI's, the flusher on our own
//   Finish     (the program's exit) or Detach (the recorder has stopped)
//
// Rules in here: no allocation and no lock of the program's in a callback, nothing printed, nothing
// thrown, no waiting on a thread of the program; memory by mmap; what does not work is counted or
// reported to the recorder, and the program goes on.
#pragma once

#include <atomic>
#include <cstdint>

#include "cupti_inject/activity_drain.h"
#include "cupti_inject/buffers.h"
#include "cupti_inject/capture_gate.h"
#include "cupti_inject/cupti_loader.h"
#include "cupti_inject/handshake.h"
#include "cupti_inject/instantiated_nodes.h"
#include "cupti_inject/launch_stacks.h"
#include "cupti_inject/lock.h"
#include "cupti_inject/nvtx_texts.h"
#include "cupti_inject/ring_producer.h"
#include "cupti_inject/waits.h"
#include "cupti_inject/watched_calls.h"

namespace xpu::inject {

enum class Connection : uint32_t { kNone, kBeingMade, kThere, kRefused };

struct Nvtx {
  std::atomic<bool> active{false};  // as Injection::active
  RegisteredTexts texts;
  std::atomic<uint64_t> next_range{0};
  std::atomic<uint32_t> next_domain{0};
};

struct Injection {  // NOLINT(clang-analyzer-optin.performance.Padding): one in a process
  std::atomic<bool> started{false};
  std::atomic<Connection> connection{Connection::kNone};
  MappedRing mapped;
  // Set while callbacks may produce; cleared for good in a forked child and at the end.
  std::atomic<bool> active{false};

  RingProducer ring;
  CaptureGate gate;
  uint64_t instance = 0;
  uint64_t session = 0;
  uint32_t settings = 0;  // bits of wire::kSetting...

  cupti::Functions cupti;
  uint32_t cupti_version = 0;
  cupti::Subscriber subscriber = nullptr;
  uint32_t graph_update_ids[2] = {};  // callbacks of cuGraphExecUpdate and its second version
  CallSet memory_calls;  // reported in pauses too: what is freed then was allocated before
  CallSet profiler_starts;
  CallSet profiler_stops;
  WaitCalls waits;
  WaitDescriber wait_describer;
  LaunchStacks stacks;  // off: the marker is called
  InstantiatedNodes instantiated;
  BufferPool pool;
  ActivityDrain drain;
  Nvtx nvtx;

  // What the flusher waits for, and what others wait for it.
  Signal flusher_wake;
  Signal flusher_started;
  Signal flusher_done;
  std::atomic<bool> flusher_idle{false};  // it sleeps until flusher_wake
  std::atomic<bool> stop{false};          // the program exits
  std::atomic<bool> finished{false};
  std::atomic<bool> context_exists{false};
  bool has_flusher = false;
};

// Owned by inject.cpp, which hands it on. By its name only those find it who are called without a
// pointer of ours: the exported functions, CUPTI's requests for buffers, fork and exit.
extern Injection g_injection;  // NOLINT(bugprone-dynamic-static-initializers): it is constinit

}  // namespace xpu::inject
