#include "cupti_inject/waits.h"

#include <cstring>

#include "cupti_inject/cuda_driver.h"

namespace xpu::inject {
namespace {

struct Prefix {
  const char* text;
  WaitKind kind;
};
// After "cu" and "cuda".
constexpr Prefix kPrefixes[] = {
    {"CtxSynchronize", WaitKind::kContext},         {"DeviceSynchronize", WaitKind::kContext},
    {"ThreadSynchronize", WaitKind::kContext},      {"StreamSynchronize", WaitKind::kStream},
    {"StreamWaitEvent", WaitKind::kStreamForEvent}, {"EventSynchronize", WaitKind::kEvent},
};
constexpr char kOfAnyContext[] = "CtxSynchronize_v2";  // before it: of the current one
constexpr uint32_t kNone = UINT32_MAX;                 // CUPTI_SYNCHRONIZATION_INVALID_VALUE

bool Begins(const char* name, const char* prefix) {
  return std::strncmp(name, prefix, std::strlen(prefix)) == 0;
}

// CUPTI's number of an event is in its records alone. One of ours is the same as long as it is the
// same event: events lie apart by more than 16 bytes, and in less than 64 GiB.
uint32_t EventId(const void* event) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(event) >> 4);
}

}  // namespace

void WaitCalls::Add(uint32_t domain, uint32_t id, const char* name) {
  const char* api = domain == cupti::kDomainRuntime ? "cuda" : "cu";
  if (!IsKnown(domain, id) || !Begins(name, api)) return;
  const char* behind = name + std::strlen(api);
  for (const Prefix& prefix : kPrefixes) {
    if (!Begins(behind, prefix.text)) continue;
    Call& call = calls_[domain - 1][id];
    call.kind = prefix.kind;
    call.per_thread = std::strstr(name, "_ptsz") != nullptr;
    call.names_context = Begins(behind, kOfAnyContext);
  }
}

WaitDescriber::StreamContext WaitDescriber::FindStreamContext() {
  StreamContext found = nullptr;
  FindInDriver("cuStreamGetCtx", &found);
  return found;
}

// `*context`: the current one at first, then that of the stream, which may be another.
uint32_t WaitDescriber::StreamId(void* stream, bool per_thread, void** context) const {
  void* owner = nullptr;
  if (IsStreamHandle(stream) && stream_context_ != nullptr &&
      stream_context_(stream, &owner) == 0 && owner != nullptr) {
    *context = owner;
  }
  uint32_t id = kNone;
  if (functions_->get_stream_id == nullptr ||
      functions_->get_stream_id(*context, stream, per_thread ? 1 : 0, &id) != cupti::kSuccess) {
    return kNone;
  }
  return id;
}

bool WaitDescriber::Describe(const cupti::CallbackData& data, const WaitCalls::Call& call,
                             uint64_t duration_ns, cupti::Synchronization* record) const {
  uint64_t now = 0;
  if (functions_->get_timestamp(&now) != cupti::kSuccess || now <= duration_ns) return false;
  *record = {};
  record->kind = cupti::kKindSynchronization;
  record->type = static_cast<uint32_t>(call.kind);
  record->start_ns = now - duration_ns;
  record->end_ns = now;
  record->correlation_id = data.correlation_id;
  record->context_id = data.context_uid;
  record->stream_id = kNone;
  record->event_id = kNone;
  record->event_sync_id = kNone;
  if (data.return_value != nullptr) {
    record->return_value = *static_cast<const uint32_t*>(data.return_value);
  }
  // Handles that were refused mean nothing.
  if (data.return_value == nullptr || record->return_value != 0 || data.parameters == nullptr) {
    return true;
  }
  const auto* handles = static_cast<void* const*>(data.parameters);
  void* context = data.context;
  if (call.names_context && handles[0] != nullptr) context = handles[0];
  if (call.kind == WaitKind::kEvent) record->event_id = EventId(handles[0]);
  if (call.kind == WaitKind::kStreamForEvent) record->event_id = EventId(handles[1]);
  if (call.kind == WaitKind::kStream || call.kind == WaitKind::kStreamForEvent) {
    record->stream_id = StreamId(handles[0], call.per_thread, &context);
  }
  uint32_t id = 0;
  if (context != data.context && functions_->get_context_id != nullptr &&
      functions_->get_context_id(context, &id) == cupti::kSuccess) {
    record->context_id = id;
  }
  return true;
}

}  // namespace xpu::inject
