// Replays of CUDA graphs as intervals, after an attach. CUPTI's record of a replay as a whole ends
// a program whose graph is older than CUPTI; its records of nodes cost 1.4 us each. So two CUDA
// events stand around a replay in its stream, and while it is launched CUPTI records no work at
// all.
//
// A replay has the record that CUPTI would have made of it, from the event before it to the one
// after it: of work that runs at the same time in other branches or streams nothing is subtracted.
// Events have no time of CUPTI's: once a second an event in a stream of our own, which does nothing
// else, is put between two readings of CUPTI's clock. (CUPTI gives no records of events that are
// recorded in a callback, with which it would have been simple.)
//
// What another thread launches during the launch of a replay has no record of CUPTI's, so it is
// counted like any launch without one. What cannot be timed is left without a record too: more
// than kSlots replays that have not ended, replays into a stream that is being captured.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cupti_inject/cupti_abi.h"
#include "cupti_inject/cupti_records.h"
#include "cupti_inject/lock.h"
#include "cupti_inject/ring_producer.h"

namespace xpu::inject {

// Functions of the program's CUDA driver; handles as void*, 0 is success.
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

  // On the thread that calls Collect. False: this driver cannot do it, or there is no memory.
  // `ring` and `functions` outlive this object; `functions` may be filled in afterwards.
  bool Open(RingProducer* ring, const cupti::Functions* functions);
  bool is_open() const { return slots_ != nullptr; }
  // Destroys the events. Nothing may be called any more; the device may still work.
  void Close();

  // Kinds of records that are off while a graph is launched; they are left to this class.
  static bool IsOffDuringReplays(uint32_t kind);
  // From now on they are on between replays. Once callbacks of replays have come for a while.
  void Start();
  // No record is on any more, and no replay is timed that has not begun.
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
    void* context;  // of its events
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
  bool MakeEvents(Slot& slot, void* context);
  void Release(Slot& slot, State state);
  Anchor* AnchorOf(void* context);
  bool TakeAnchor(Anchor& anchor);
  bool Measure(Slot& slot, const Anchor& anchor);
  void CollectOne(Slot& slot);
  void SwitchRecords(bool on);

  RingProducer* ring_ = nullptr;
  const cupti::Functions* functions_ = nullptr;
  GraphDriver driver_;
  Slot* slots_ = nullptr;  // kSlots of them
  Anchor anchors_[kContexts];
  std::atomic<uint32_t> next_slot_{0};
  std::atomic<uint32_t> pending_{0};
  Lock collecting_;  // held while events are looked at; what destroys a context takes it too
  uint64_t error_ns_ = 0;

  Lock switching_;  // what follows, and the kinds
  uint32_t replays_ = 0;
  bool is_on_ = false;
};

}  // namespace xpu::inject
