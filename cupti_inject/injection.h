// The injected library's one state object and the life of the library in a process:
//
//   Connect    (whichever of CUDA and NVTX comes first) invitation -> ring
//   Start      (InitializeInjection, inside the program's cuInit) CUPTI
//   callbacks  on the program's threads, buffers on CUPTI's, the flusher on our own
//   Finish     (the program's exit) or Detach (the recorder has stopped)
//
// Rules in here: no allocation and no lock of the program's in a callback, nothing printed, nothing
// thrown, no waiting on a thread of the program; memory by mmap; what does not work is counted or
// told to the recorder, and the program goes on.
#pragma once

#include <atomic>
#include <cstdint>

#include "cupti_inject/activity_drain.h"
#include "cupti_inject/buffers.h"
#include "cupti_inject/call_tracker.h"
#include "cupti_inject/capture_gate.h"
#include "cupti_inject/cupti_loader.h"
#include "cupti_inject/handshake.h"
#include "cupti_inject/instantiated_nodes.h"
#include "cupti_inject/invitation.h"
#include "cupti_inject/launch_stacks.h"
#include "cupti_inject/lock.h"
#include "cupti_inject/nvtx_texts.h"
#include "cupti_inject/ring_producer.h"
#include "cupti_inject/waits.h"

namespace xpu::inject {

// Some of the driver's and the runtime's calls, by their callback ids.
class CallSet {
 public:
  static constexpr uint32_t kMaxId = 4096;

  void Add(uint32_t domain, uint32_t id) {
    if (IsKnown(domain, id)) bits_[domain - 1][id / 64] |= uint64_t{1} << id % 64;
  }
  bool Has(uint32_t domain, uint32_t id) const {
    return IsKnown(domain, id) && (bits_[domain - 1][id / 64] >> id % 64 & 1) != 0;
  }

 private:
  static constexpr bool IsKnown(uint32_t domain, uint32_t id) {
    return (domain == cupti::kDomainDriver || domain == cupti::kDomainRuntime) && id < kMaxId;
  }
  uint64_t bits_[2][kMaxId / 64] = {};
};

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
  CallSet memory_calls;               // told in pauses too: what is freed then was allocated before
  CallSet profiler_starts;
  CallSet profiler_stops;
  WaitCalls waits;
  WaitTeller wait_teller;
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

// The types of the graph nodes that are being made, by their graphs: a node that holds a child
// graph is begun before the nodes of that graph, and finished after them. Only the beginning tells
// a type.
struct StartingNodes {
  static constexpr uint32_t kMax = 4;

  void Set(const void* graph, uint32_t type) {
    for (Starting& one : recent) {
      if (one.graph == graph) {
        one.type = type;
        return;
      }
    }
    recent[next++ % kMax] = {graph, type};
  }
  uint32_t TypeIn(const void* graph) const {
    for (const Starting& one : recent) {
      if (one.graph == graph) return one.type;
    }
    return 0;
  }

  struct Starting {
    const void* graph;
    uint32_t type;
  };
  Starting recent[kMax];
  uint32_t next;
};

// How many ranges the thread has open in each of the first domains.
struct RangeLevels {
  static constexpr uint32_t kDomains = 8;
  static constexpr uint32_t kLevels = 16;
  uint16_t open[kDomains];
  uint16_t left_out[kDomains];  // of the first levels those that began in a pause
};

// Thread-local, initial-exec: no allocation at a thread's first use.
struct ThreadState {
  CallTracker tracker;
  StartingNodes starting;
  ThreadStack stack;
  RangeLevels ranges;
  OpenCapture capture;
  uint32_t tid;            // 0: not asked yet
  uint32_t wait_delay_ns;  // of the wait that it is in, from the call on: our own work
};

extern Injection g_injection;  // NOLINT(bugprone-dynamic-static-initializers): it is constinit
ThreadState& CurrentThread();
uint32_t CurrentTid(ThreadState& thread);

// ---- inject.cpp
// The first call connects, later ones wait for it, bounded. `bell`: see handshake.h, only of the
// one that connects. False: there is no recorder.
bool ConnectOnce(Bell* bell);

// ---- setup.cpp
// Everything of Start() behind the ring. False with one sentence in `reason`.
bool SetUpCupti(const char* chosen_cupti, char* reason, size_t reason_size);
void TearDownCupti();
void SendDetail(wire::DetailKind kind, uint64_t number, const char* text);

// ---- callbacks.cpp
void OnCallback(void* user_data, uint32_t domain, uint32_t callback_id, const void* data);
void OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records);
void OnBufferCompleted(void* context, uint32_t stream_id, uint8_t* buffer, size_t size,
                       size_t valid_size);

// ---- graph_nodes.cpp
// Notes from now on who makes the nodes of CUDA graphs. False: this CUPTI cannot tell.
bool WatchGraphNodes();
void OnGraphNode(uint32_t callback_id, const cupti::GraphData& data);
// At the end of a call that updated an executable graph.
void OnGraphUpdated(const cupti::GraphExecUpdateParameters& parameters);
// At the end of a call that made nodes.
void ForgetNodes(uint32_t correlation_id);

// ---- flusher.cpp
// Starts the thread that fetches what CUPTI has finished and pairs the clocks.
bool StartFlusher();
// The last flush, then CUPTI is given back; `state`: in which it ends. On the flusher's thread, or
// at exit without one.
void FinishRecording(wire::State state);
// Waits, bounded, until the flusher has done it.
void StopFlusher();

}  // namespace xpu::inject
