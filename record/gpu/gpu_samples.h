// Turns the samples of GPU program counters that one injected library sends into events, and makes
// slices of the code that they are in.
//
// A module's code arrives once, whole, and is kept as long as its process: which of its functions
// will have samples is not known before. What is stored is only those.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cupti_inject/wire.h"
#include "format/events.h"
#include "record/base/fair_budget.h"
#include "record/sink/event_sink.h"

namespace xpu {

// What to do where a context cannot be sampled; `result`: of CUPTI. Empty: nothing is known.
std::string_view HintOfSampling(uint64_t result);

class GpuSamples {
 public:
  // `memory` outlives this object.
  GpuSamples(InstanceId instance, uint32_t pid, FairBudget::Account& memory)
      : instance_(instance), pid_(pid), memory_(memory) {}
  GpuSamples(const GpuSamples&) = delete;
  GpuSamples& operator=(const GpuSamples&) = delete;
  ~GpuSamples();

  // False: the message does not match its sizes, or refers to what was not defined.
  bool TakeSampling(std::span<const std::byte> message, EventSink& sink);
  bool TakeSamples(std::span<const std::byte> message, EventSink& sink);
  bool TakeFunction(std::span<const std::byte> message);
  bool TakeReason(std::span<const std::byte> message);
  bool TakeCubin(std::span<const std::byte> message, EventSink& sink);

  // Writes the code of functions that had their first samples, at most once in a while but for the
  // last call.
  void Update(EventSink& sink, bool is_last);

 private:
  struct Cubin {
    uint64_t size_bytes = 0;  // 0: none of it has come
    bool is_refused = false;  // no memory, or pieces are missing
    std::string bytes;
    std::set<std::string> pending;  // functions with samples that are in no slice
  };

  bool TakeMemory(uint64_t bytes);
  void WriteSlice(uint64_t crc, Cubin& cubin, EventSink& sink);
  void AddLoss(EventSink& sink, LossKind kind, std::string detail) const;

  const InstanceId instance_;
  const uint32_t pid_;
  FairBudget::Account& memory_;
  uint64_t memory_bytes_ = 0;                                    // of all below
  std::map<std::pair<uint32_t, uint32_t>, KeptText> reasons_;    // by context and number
  std::map<std::pair<uint64_t, uint32_t>, KeptText> functions_;  // by module and number
  std::map<uint64_t, Cubin> cubins_;
  uint64_t next_slices_ns_ = 0;
  uint64_t slice_bytes_ = 0;  // so far
};

}  // namespace xpu
