// Waits for the GPU, reported as CUPTI's records would report them. We do not ask it for these
// records: once their kind is on, calls that wait for nothing become slower too, by 600 us in a
// step of PyTorch of 2.9 ms (tests/bench/README.md). The calls that wait are watched anyway, and
// each of them has one record.
#pragma once

#include <cstdint>

#include "cupti_inject/cupti_abi.h"

namespace xpu::inject {

enum class WaitKind : uint8_t {  // values of CUpti_ActivitySynchronizationType
  kNone = 0,
  kEvent = 1,
  kStreamForEvent = 2,
  kStream = 3,
  kContext = 4,
};

// What the calls of the driver and the runtime wait for, by their callback ids.
class WaitCalls {
 public:
  // Of a call that waits for nothing it notes nothing. `name` as for IsWatched.
  void Add(uint32_t domain, uint32_t id, const char* name);

  struct Call {
    WaitKind kind : 6;
    bool per_thread : 1;  // its stream 0 is that of the thread
    bool names_context : 1;
  };
  Call Of(uint32_t domain, uint32_t id) const {
    return IsKnown(domain, id) ? calls_[domain - 1][id] : Call{};
  }

 private:
  static constexpr uint32_t kMaxId = 4096;

  static constexpr bool IsKnown(uint32_t domain, uint32_t id) {
    return (domain == cupti::kDomainDriver || domain == cupti::kDomainRuntime) && id < kMaxId;
  }

  Call calls_[2][kMaxId] = {};
};

// Asks the driver and CUPTI what the handles of a call mean. On the thread of the call.
class WaitDescriber {
 public:
  using StreamContext = int (*)(void* stream, void** context);

  // cuStreamGetCtx of the program's driver; nullptr where it has none.
  static StreamContext FindStreamContext();

  void Open(const cupti::Functions* functions, StreamContext stream_context) {
    functions_ = functions;
    stream_context_ = stream_context;
  }
  // The record of a wait that has just ended, after `duration_ns`; at the exit of its call. False:
  // CUPTI has no time for it.
  bool Describe(const cupti::CallbackData& data, const WaitCalls::Call& call, uint64_t duration_ns,
                cupti::Synchronization* record) const;

 private:
  uint32_t StreamId(void* stream, bool per_thread, void** context) const;

  const cupti::Functions* functions_ = nullptr;
  StreamContext stream_context_ = nullptr;
};

}  // namespace xpu::inject
