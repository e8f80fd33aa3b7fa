// Turns the messages of one injected library into events of the capture.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cupti_inject/wire.h"
#include "format/events.h"
#include "record/base/fair_budget.h"
#include "record/gpu/gpu_samples.h"
#include "record/gpu/inject_server.h"
#include "record/gpu/inline_stacks.h"
#include "record/gpu/open_calls.h"
#include "record/sink/event_sink.h"

namespace xpu {

// Messages are untrusted: one whose sizes do not match is counted and skipped.
class GpuPeer {
 public:
  // The budget of all processes together, and the share that each process always has: enough for
  // some hundred names and stacks.
  static FairBudget Memory() { return FairBudget(uint64_t{768} << 20, uint64_t{256} << 10); }

  GpuPeer(InjectPeer peer, EventSink& sink, const InlineStacks::Settings& stacks = {},
          const FairBudget& memory = Memory());

  // Takes the messages in the ring, and the library's state.
  void Drain(EventSink& sink);
  // Takes the remaining messages and adds what is missing to the loss ledger.
  enum class End {
    kOfProcess,
    kOutlived,  // the recording has ended, and the process should have ended too
    kLeft,      // the recording has ended, and the process continues as intended
  };
  void Finish(EventSink& sink, End end);

  // `gate`: bits of wire::kGate... A library that was asked to leave (kGateEnds) does so.
  void SetGate(uint32_t gate) {
    if ((gate_ & wire::kGateEnds) != 0) return;
    gate_ = gate;
    peer_.ring.header().gate.store(gate, std::memory_order_relaxed);
  }
  // It was asked to leave a program that was attached to, and then closes its connection.
  bool leaves() const { return (gate_ & wire::kGateEnds) != 0 && peer_.is_attached; }
  // Answers a library that waits until the tables for stacks of its marker are available
  // (RingHeader).
  void AnswerForTables(bool are_there);
  // True if the library has sent everything, or will never send anything.
  bool IsQuiet() const;
  // Capture ranges that began or ended in the process since the last call.
  struct Switch {
    uint64_t time_ns;
    bool is_open;
  };
  std::vector<Switch> TakeSwitches() { return std::exchange(switches_, {}); }

  // A GPU that the library asks to sample (its UUID), until it is answered.
  const std::string& claimed_gpu() const { return claimed_gpu_; }
  void AnswerClaim(bool is_granted);

  // Waits for at most `timeout_ms`.
  bool HasEnded(int timeout_ms = 0) const;
  InstanceId instance() const { return InstanceId{peer_.instance}; }
  uint32_t pid() const { return static_cast<uint32_t>(peer_.pid); }
  uint64_t markers() const;
  // False where only NVTX has loaded the library: CUDA has not started.
  bool has_cuda() const {
    return state_ != wire::State::kConnected && state_ != wire::State::kStartsCupti;
  }
  // True after an attach if the GPU has been busy with earlier work for so long that the recording
  // begins without it.
  bool waits_for_gpu() const { return state_ == wire::State::kStartsCupti && wait_is_reported_; }
  // True if launch stacks come from the marker although the library was to take them itself.
  bool marker_used() const { return marker_used_; }
  // After the process has ended, these still hold the stacks that wait for unwind tables.
  InlineStacks& stacks() { return stacks_; }
  // Why the marker is used; empty if it is not known.
  const std::string& marker_reason() const { return marker_reason_; }
  // Returns the path of the libcupti that the library holds, once; empty if it holds none.
  std::string TakeHeldCupti();
  // Returns, once for each hang of the GPU or wait for it, what it looks like; empty if there is
  // none.
  std::string TakeHang() { return std::exchange(hang_text_, {}); }
  // Returns, once, what the library reported about itself, for -v.
  std::string TakeNews() { return std::exchange(news_, {}); }

 private:
  using Bytes = std::span<const std::byte>;

  void TakeMessage(wire::MessageKind kind, Bytes message, EventSink& sink);
  bool TakeActivity(Bytes message, EventSink& sink);
  bool TakeName(Bytes message);
  bool TakeApiCall(Bytes message, EventSink& sink);
  bool TakeClockPair(Bytes message, EventSink& sink);
  bool TakeCallbackName(Bytes message, EventSink& sink);
  bool TakeDetail(Bytes message, EventSink& sink);
  void FollowWait(EventSink& sink, wire::State state);
  void BeginHang(uint64_t since_ns);
  void EndHang(EventSink& sink);
  bool TakeGraphNode(Bytes message, EventSink& sink);
  bool TakeNvtx(Bytes message, EventSink& sink);
  bool TakeNvtxSchemaEntry(Bytes message, EventSink& sink);
  bool TakeSwitch(Bytes message);
  bool TakeClaim(Bytes message);
  void WriteProcess(EventSink& sink);
  void CountLosses(EventSink& sink);
  void CountMissing(EventSink& sink, End end);
  void Add(EventSink& sink, LossKind kind, uint64_t count, std::string detail = {}) const;

  InjectPeer peer_;
  uint32_t gate_ = 0;
  wire::State state_ = wire::State::kConnected;
  bool changed_ = true;  // since the last GpuProcess event
  bool has_faulted_ = false;
  bool dormant_counted_ = false;
  bool asked_for_tables_ = false;  // in an earlier round
  bool held_cupti_reported_ = false;
  bool has_torn_message_ = false;  // which the process did not finish
  bool marker_used_ = false;
  std::string marker_reason_;
  GpuProcess process_;  // without its strings
  std::string cupti_path_;
  std::string detail_;
  std::string news_;

  FairBudget::Account memory_;
  uint64_t refusals_counted_ = 0;
  ChargedTable<KeptText> names_{memory_};
  OpenCalls calls_{memory_};
  InlineStacks stacks_;
  GpuSamples samples_;
  std::vector<Switch> switches_;
  // A hang: since when nothing has ended on the GPU, when that was seen, and how many records have
  // come without a time since.
  uint64_t hang_since_ns_ = 0;  // 0: it does not hang
  uint64_t hang_seen_ns_ = 0;
  uint64_t unfinished_ = 0;
  std::string hang_text_;
  // Since when the process waits for the GPU, in CUPTI's first call after an attach; 0: it does
  // not.
  uint64_t wait_since_ns_ = 0;
  bool wait_is_reported_ = false;
  std::string claimed_gpu_;
  uint32_t claim_ = 0;  // its number

  uint64_t activities_taken_ = 0;
  uint64_t calls_taken_ = 0;
  std::array<uint64_t, wire::kCounterCount> counted_{};
};

}  // namespace xpu
