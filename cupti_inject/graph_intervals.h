// Replays of CUDA graphs as intervals, after an attach. CUPTI's record of a whole replay crashes a
// program whose graph is older than CUPTI, and its records of nodes cost 1.4 us each. So a CUDA
// event is recorded before the replay and one after it, in its stream, and CUPTI records no work
// while a graph is launched.
//
// A replay gets the record that CUPTI would have made of it, from one event to the other, whatever
// else runs at the same time. CUDA has only differences of events. What CUPTI's clock shows at an
// event is measured once a second: an event in a stream of our own, in which there is nothing else,
// is put between two readings of that clock. (CUPTI's own records of events were rejected: there
// are none of events that are recorded in a callback.)
//
// What other threads start while a graph is launched has no record of CUPTI's: launches of kernels
// then count as pending, memory copies and memsets are missing. Replays that cannot be timed have
// no record either: when more than kSlots have not ended, or into a stream that is being captured.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cupti_inject/activity_drain.h"
#include "cupti_inject/cupti_abi.h"
#include "cupti_inject/cupti_records.h"
#include "cupti_inject/lock.h"
#include "cupti_inject/ring_producer.h"

namespace xpu::inject {

// Functions of the program's CUDA driver. Handles are void*, 0 is success.
struct GraphDriver {
  bool Find();

  int (*stream_context)(void* stream, void** context) = nullptr;
  int (*push_context)(void* context) = nullptr;
  int (*pop_context)(void** context) = nullptr;
  int (*create_stream)(void** stream, unsigned flags) = nullptr;
  int (*destroy_stream)(void* stream) = nullptr;
  int (*create_event)(void** event, unsigned flags) = nullptr;
  int (*destroy_event)(void* event) = nullptr;
  int (*record_event)(void* event, void* stream) = nullptr;
  int (*record_event_per_thread)(void* event, void* stream) = nullptr;
  int (*query_event)(void* event) = nullptr;
  int (*elapsed_ms)(float* ms, void* start, void* end) = nullptr;
  int (*is_capturing)(void* stream, int* status) = nullptr;
  int (*is_capturing_per_thread)(void* stream, int* status) = nullptr;
  int (*exchange_capture_mode)(int* mode) = nullptr;
};

class GraphIntervals {
 public:
  // How often our thread looks for replays that have ended.
  static constexpr uint64_t kCollectPeriodNs = 20'000'000;

  // On the thread that calls Collect. False: this driver cannot do it, or there is no memory. All
  // outlive this object, and are opened before Start.
  bool Open(RingProducer* ring, ActivityDrain* drain, const cupti::Functions* functions);
  bool is_open() const { return slots_ != nullptr; }
  // After Stop, while OnContextDestroyed is still called. The device may still work.
  void DestroyEvents();
  // Nothing may be called any more.
  void Close();

  // Kinds of records that only this class switches on and off.
  static bool IsOffDuringReplays(uint32_t kind);
  // From now on they are on except during replays. The callbacks of replays must have been on for a
  // while: a replay that began without one is not known here.
  void Start();
  // Switches them off for good. No further replay is timed.
  void Stop();

  // In the callbacks of cuGraphLaunch, on its thread. `replay` is the thread's own, 0 between
  // calls. `is_timed`: the call is recorded. `per_thread`: its stream 0 is that of the thread.
  void Begin(const cupti::CallbackData& data, bool per_thread, bool is_timed, uint32_t* replay);
  void End(const cupti::CallbackData& data, bool per_thread, uint32_t* replay);
  void OnContextDestroyed(void* context);

  // On our thread: sends what has ended.
  void Collect();
  bool has_pending() const { return pending_.load(std::memory_order_seq_cst) > 0; }
  // The largest error of a time so far.
  uint64_t error_ns() const { return error_ns_; }

 private:
  static constexpr uint32_t kSlots = 4096;
  static constexpr uint32_t kContexts = 16;

  enum class State : uint32_t { kEmpty, kFree, kUsed, kPending };

  struct Slot {
    std::atomic<State> state;
    std::atomic<void*> context;  // of its events
    void* start;
    void* end;
    cupti::GraphTrace record;
  };
  struct Anchor {
    void* context = nullptr;  // nullptr: of none
    void* stream = nullptr;
    void* event = nullptr;
    uint64_t event_ns = 0;  // CUPTI's time of the event; 0: not known
    uint64_t next_ns = 0;   // when it is to be taken anew
  };

  uint32_t TakeSlot(void* context);
  bool Claim(Slot& slot, State state, void* context);
  bool MakeEvents(Slot& slot, void* context);
  void DestroyEventsOf(const Slot& slot);
  void Release(Slot& slot, State state);
  Anchor* AnchorOf(void* context);
  void TakeAnchor(Anchor& anchor);
  bool Measure(Slot& slot, const Anchor& anchor);
  void CollectOne(Slot& slot);
  void SwitchRecords(bool on);

  RingProducer* ring_ = nullptr;
  ActivityDrain* drain_ = nullptr;
  const cupti::Functions* functions_ = nullptr;
  GraphDriver driver_;
  Slot* slots_ = nullptr;  // kSlots of them
  Anchor anchors_[kContexts];
  std::atomic<uint32_t> pending_{0};
  Lock collecting_;  // held while events are looked at; what destroys a context takes it too
  uint64_t error_ns_ = 0;

  Lock switching_;  // what follows, and the kinds
  uint32_t replays_ = 0;
  bool is_on_ = false;
};

}  // namespace xpu::inject
