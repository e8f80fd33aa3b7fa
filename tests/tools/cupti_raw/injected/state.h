// What all parts of the library share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <cupti.h>

#include "output_file.h"

namespace xpu::cupti_raw {

// The functions used, with the types of cupti.h; found with dlsym so that the program's own copy of
// libcupti is the one that answers.
#define XPU_CUPTI_FUNCTIONS(X)            \
  X(cuptiSubscribe)                       \
  X(cuptiSubscribe_v2)                    \
  X(cuptiUnsubscribe)                     \
  X(cuptiEnableDomain)                    \
  X(cuptiGetCallbackName)                 \
  X(cuptiActivityEnable)                  \
  X(cuptiActivityDisable)                 \
  X(cuptiActivityEnableRuntimeApi)        \
  X(cuptiActivityEnableDriverApi)         \
  X(cuptiActivityEnableAllSyncRecords)    \
  X(cuptiActivityEnableLatencyTimestamps) \
  X(cuptiActivitySetAttribute)            \
  X(cuptiActivityRegisterCallbacks)       \
  X(cuptiActivityFlushAll)                \
  X(cuptiActivityGetNextRecord)           \
  X(cuptiActivityGetNumDroppedRecords)    \
  X(cuptiSetThreadIdType)                 \
  X(cuptiGetTimestamp)                    \
  X(cuptiGetVersion)                      \
  X(cuptiGetGraphNodeId)                  \
  X(cuptiGetGraphId)                      \
  X(cuptiGetGraphExecId)

struct Cupti {
#define XPU_MEMBER(name) decltype(&::name) name = nullptr;
  XPU_CUPTI_FUNCTIONS(XPU_MEMBER)
#undef XPU_MEMBER
};

// Everything of this process; made once in InitializeInjection, never destroyed, because CUPTI may
// still call back while the program's destructors run.
struct State {
  Cupti cupti;
  Writer writer;
  CUpti_SubscriberHandle subscriber = nullptr;
  std::vector<CUpti_ActivityKind> kinds;
  size_t buffer_bytes = 0;
  uint64_t flush_ms = 0;
  uint64_t force_at_ms = 0;

  std::mutex names_mutex;
  std::set<std::pair<uint32_t, uint32_t>> named_callbacks;
  std::map<uint64_t, std::string> symbols;

  std::mutex thread_mutex;
  std::condition_variable wake;
  bool context_exists = false;  // guarded by thread_mutex
  bool stopping = false;        // guarded by thread_mutex
  std::thread flusher;

  std::atomic<bool> silent{false};  // a forked child, or after the end
  std::atomic<bool> context_seen{false};
  std::atomic<uint64_t> callbacks{0};
  std::atomic<uint64_t> callbacks_left_out{0};
  std::atomic<uint64_t> buffers_requested{0};
  std::atomic<uint64_t> buffers_completed{0};
  std::atomic<uint64_t> buffers_left_out{0};
};
inline State* g_state = nullptr;

// Calls that this library makes itself are not the program's.
inline constinit thread_local bool t_own_call = false;

template <typename T>
uint64_t Number(const T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

void WriteInfo(const char* key, std::string_view value);
void WriteThreadOnce();

// Runs one call of the set-up and writes its result.
template <typename Function, typename... Args>
CUptiResult Setup(const char* name, uint32_t argument, Function function, Args... args) {
  const uint64_t begin = Now(CLOCK_MONOTONIC);
  int32_t result = kNotFound;
  if (function != nullptr) result = function(args...);
  Payload payload;
  payload.Add(SetupPayload{result, argument, Now(CLOCK_MONOTONIC) - begin});
  payload.AddString(name);
  g_state->writer.Write(EntryType::kSetup, std::move(payload), begin, 100);
  return static_cast<CUptiResult>(result);
}

}  // namespace xpu::cupti_raw
