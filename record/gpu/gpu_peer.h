// What one injected library sends, as events of the capture.
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
#include "record/gpu/inject_server.h"
#include "record/gpu/inline_stacks.h"
#include "record/gpu/open_calls.h"
#include "record/sink/event_sink.h"

namespace xpu {

// Messages are untrusted: one whose sizes do not fit is counted and left out.
class GpuPeer {
 public:
  // Of all processes together, and what each has in any case: some hundred names and stacks.
  static FairBudget Memory() { return FairBudget(uint64_t{768} << 20, uint64_t{256} << 10); }

  GpuPeer(InjectPeer peer, EventSink& sink, const InlineStacks::Settings& stacks = {},
          const FairBudget& memory = Memory());

  // Takes what is in the ring, and the library's state.
  void Drain(EventSink& sink);
  // Takes the rest and puts what is missing into the ledger.
  enum class End {
    kOfProcess,
    kOutlived,  // the recording has ended, and it should not have been there any more
    kLeft,      // the recording has ended, and it goes on as it should
  };
  void Finish(EventSink& sink, End end);

  // Bits of wire::kGate...
  void SetGate(uint32_t gate) { peer_.ring.header().gate.store(gate, std::memory_order_relaxed); }
  // To a library that waits for the tables of the marker's stacks: they are there (RingHeader).
  void AnswerForTables(bool are_there);
  // The library has sent all that it had, or will send nothing.
  bool IsQuiet() const;
  // Capture ranges that began or ended in it since the last call.
  struct Switch {
    uint64_t time_ns;
    bool is_open;
  };
  std::vector<Switch> TakeSwitches() { return std::exchange(switches_, {}); }

  // Waits at most `timeout_ms` for it.
  bool HasEnded(int timeout_ms = 0) const;
  InstanceId instance() const { return InstanceId{peer_.instance}; }
  uint32_t pid() const { return static_cast<uint32_t>(peer_.pid); }
  uint64_t markers() const;
  // CUDA has started in it: not only NVTX has loaded the library.
  bool has_cuda() const { return state_ != wire::State::kConnected; }
  // Its launch stacks come by the marker although the library was to take them itself.
  bool marker_used() const { return marker_used_; }
  // Of a process that has ended: the stacks that wait for the tables of their code.
  InlineStacks& stacks() { return stacks_; }
  // Why, as far as it is known.
  const std::string& marker_reason() const { return marker_reason_; }
  // The libcupti that the library holds in the process, once; empty: none yet, or returned before.
  std::string TakeHeldCupti();
  // For -v: what the library said of itself, once.
  std::string TakeNews() { return std::exchange(news_, {}); }

 private:
  using Bytes = std::span<const std::byte>;

  void TakeMessage(wire::MessageKind kind, Bytes message, EventSink& sink);
  bool TakeActivity(Bytes message, EventSink& sink);
  bool TakeName(Bytes message);
  bool TakeApiCall(Bytes message, EventSink& sink);
  bool TakeClockPair(Bytes message, EventSink& sink);
  bool TakeCallbackName(Bytes message, EventSink& sink);
  bool TakeDetail(Bytes message);
  bool TakeGraphNode(Bytes message, EventSink& sink);
  bool TakeNvtx(Bytes message, EventSink& sink);
  bool TakeSwitch(Bytes message);
  void WriteProcess(EventSink& sink);
  void CountLosses(EventSink& sink);
  void CountMissing(EventSink& sink, End end);
  void Add(EventSink& sink, LossKind kind, uint64_t count, std::string detail = {}) const;

  InjectPeer peer_;
  wire::State state_ = wire::State::kConnected;
  bool changed_ = true;  // since the last GpuProcess event
  bool dormant_counted_ = false;
  bool asked_for_tables_ = false;  // in an earlier round
  bool held_cupti_told_ = false;
  bool marker_used_ = false;
  std::string marker_reason_;
  GpuProcess process_;  // without its texts
  std::string cupti_path_;
  std::string detail_;
  std::string news_;

  FairBudget::Account memory_;
  uint64_t refusals_counted_ = 0;
  ChargedTable<KeptText> names_{memory_};
  OpenCalls calls_{memory_};
  InlineStacks stacks_;
  std::vector<Switch> switches_;

  uint64_t activities_taken_ = 0;
  uint64_t calls_taken_ = 0;
  std::array<uint64_t, wire::kCounterCount> counted_{};
};

}  // namespace xpu
