// The injected library's two state objects: what there is of it in the process (Process), and the
// session with a recorder that goes on now (Injection). At most one session goes on at a time:
//
//   Connect    (whichever of CUDA and NVTX comes first) connection string -> ring,
//              or (xpu_inject_attach, on a thread that the recorder started) AttachRequest -> ring
//   Start      (InitializeInjection, inside the program's cuInit; or that thread) CUPTI
//   callbacks  on the program's threads, buffers on CUPTI's, the flusher on our own
//   Finish     (the program's exit) or Detach (the recorder has stopped): the session's memory is
//              freed as soon as no thread is in a callback, and another session may follow
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
#include "cupti_inject/graph_intervals.h"
#include "cupti_inject/handshake.h"
#include "cupti_inject/instantiated_nodes.h"
#include "cupti_inject/launch_stacks.h"
#include "cupti_inject/lock.h"
#include "cupti_inject/nvtx_texts.h"
#include "cupti_inject/pc_sampling.h"
#include "cupti_inject/presence.h"
#include "cupti_inject/ring_producer.h"
#include "cupti_inject/thread_state.h"
#include "cupti_inject/torch_slot.h"
#include "cupti_inject/waits.h"
#include "cupti_inject/watched_calls.h"

namespace xpu::inject {

enum class Connection : uint32_t { kNone, kBeingMade, kThere, kRefused };

struct Nvtx {
  std::atomic<bool> active{false};  // as Injection::active
  RegisteredTexts texts;
  std::atomic<uint64_t> next_range{0};
  std::atomic<uint32_t> next_domain{0};
  std::atomic<uint64_t> next_schema{0};
};

inline constexpr uint32_t kSeveralThreads = UINT32_MAX;

// What sessions have in common. Plain data: a forked child has a copy.
struct Process {
  std::atomic<bool> started{false};                       // InitializeInjection was called
  std::atomic<Connection> connection{Connection::kNone};  // the one of the environment
  std::atomic<bool> has_session{false};                   // BeginSession
  uint32_t sessions = 0;                                  // so far; of whose turn it is
  std::atomic<bool> is_dormant{false};  // CUDA was started, and CUPTI cannot be used; NVTX can
  std::atomic<bool> exits{false};       // the program does
  // Our end of the connection with a recorder that has attached, plus 1. All of this begins as
  // zeros: it takes no room in the library's file.
  std::atomic<int> peer_plus_1{0};
  std::atomic<int> offered_plus_1{0};  // the other one, until the recorder has it
  // The thread that was seen to replay CUDA graphs, in all sessions: see LeaveCupti.
  std::atomic<uint32_t> graph_thread{0};  // 0: none; kSeveralThreads
  std::atomic<bool> keeps_cupti{false};   // for good
  // Since when a thread of ours is in CUPTI's first call after an attach, which spins until the GPU
  // has finished its work, if it ever does; 0: in none. Until then there is no other session.
  std::atomic<uint64_t> first_call_ns{0};
  // A session has set CUPTI up, and it has not been finalized since.
  std::atomic<bool> has_cupti{false};
  // The same of the parent, in a forked child that may initialize CUDA itself. CUPTI's own threads
  // are missing here: records are made but never delivered.
  std::atomic<bool> has_cupti_of_parent{false};
  std::atomic<bool> makes_records_of_parent{false};
  bool has_fork_handler = false;  // of whose turn it is
  bool has_exit_handler[3] = {};  // by SetUpStep
  Presence presence;
  Nvtx nvtx;  // its copies in the program connect once
  TorchSlot torch;
};

// How CUPTI is being left after an attach, which is best done at the end of a call of the
// program's.
enum class Leaving : uint32_t { kNot, kWanted, kBegun, kDone, kFailed };

struct Injection {        // NOLINT(clang-analyzer-optin.performance.Padding): one in a process
  uint32_t number = 0;    // of the session in this process, from 1
  bool attached = false;  // to a program that ran already
  MappedRing mapped;
  // Set while callbacks may produce; cleared for good in a forked child and at the end.
  std::atomic<bool> active{false};
  // What CUPTI hands to the callbacks that are this session's; 0: none may produce. One that was on
  // its way when its session ended is of no other.
  std::atomic<uintptr_t> mark{0};
  std::atomic<Leaving> leaving{Leaving::kNot};
  // By another recorder, from one that read nothing: what is missing is a loss of that one.
  std::atomic<bool> is_taken_over{false};
  Signal left;

  RingProducer ring;
  CaptureGate gate;
  uint64_t instance = 0;
  uint64_t session = 0;
  uint32_t settings = 0;  // bits of wire::kSetting...

  cupti::Functions cupti;
  uint32_t cupti_version = 0;
  cupti::Subscriber subscriber = nullptr;
  uint32_t graph_update_ids[2] = {};  // callbacks of cuGraphExecUpdate and its second version
  uint32_t graph_launch_ids[2] = {};  // and of cuGraphLaunch and its per-thread version
  CallSet memory_calls;  // reported in pauses too: what is freed then was allocated before
  CallSet profiler_starts;
  CallSet profiler_stops;
  WaitCalls waits;
  WaitDescriber wait_describer;
  LaunchStacks stacks;  // off: the marker is called
  InstantiatedNodes instantiated;
  BufferPool pool;
  ActivityDrain drain;
  GraphIntervals intervals;  // open after an attach that wants them
  PcSampling sampling;       // open where the recorder wants it

  // What the flusher waits for, and what others wait for it.
  Signal flusher_wake;
  Signal flusher_started;
  Signal flusher_done;
  std::atomic<bool> flusher_idle{false};  // it sleeps until flusher_wake
  std::atomic<bool> stop{false};          // the program exits
  std::atomic<bool> finished{false};
  std::atomic<bool> context_exists{false};
  // The flusher's thread keeps here since when nothing ends on the GPU, and how much had ended.
  uint64_t hang_since_ns = 0;  // 0: it does not hang
  uint64_t ended_before_hang = 0;
  bool keeps_kinds_on = false;  // at the end of an attached session: see LeaveCupti
  bool has_flusher = false;
};

// Owned by session.cpp, which hands them on. By name only those find them who are called without a
// pointer of ours: the exported functions, CUPTI's requests for buffers, fork and exit.
extern Injection g_injection;  // NOLINT(bugprone-dynamic-static-initializers): it is constinit
extern Process g_process;      // NOLINT(bugprone-dynamic-static-initializers): it is constinit

// Whoever does this and then looks at Process::exits, and whoever sets that and then looks at
// `active`, do not both miss what the other one did.
inline void Activate(Injection& self) {
  self.active.store(true);
  self.mark.store(self.number, std::memory_order_release);
}

inline void Deactivate(Injection& self) {
  self.mark.store(0, std::memory_order_release);
  self.active.store(false, std::memory_order_release);
}

// Whether the program's call that it is in was seen to begin.
inline bool IsInsideCall(const Injection& self, const ThreadState& thread) {
  return thread.session == self.number && thread.tracker.depth > 0;
}

// While one of our functions that the program or CUPTI calls may touch the session's memory. To be
// made before Injection::active is looked at: afterwards is too late.
class Inside {
 public:
  explicit Inside(ThreadState& thread) : slot_(SlotOf(thread)) {
    if (g_process.presence.IsShared(slot_)) [[unlikely]] {
      slot_.inside.fetch_add(1);
      return;
    }
    slot_.inside.store(slot_.inside.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // presence.h: the CPU needs none
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    if (g_process.presence.IsShared(slot_)) [[unlikely]] {
      slot_.inside.fetch_sub(1);
      return;
    }
    slot_.inside.store(slot_.inside.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }

 private:
  static ThreadSlot& SlotOf(ThreadState& thread) {
    if (thread.slot == nullptr) [[unlikely]] {
      thread.slot = g_process.presence.Claim(CurrentTid(thread));
    }
    return *thread.slot;
  }

  ThreadSlot& slot_;
};

}  // namespace xpu::inject
