#include "cupti_inject/activity_drain.h"

#include <cstring>

#include "cupti_inject/cupti_records.h"
#include "cupti_inject/record_pointers.h"

namespace xpu::inject {
namespace {

constexpr uint64_t kWaitStepNs = 500'000;

// Where a record of this kind has the id of a graph's node; 0: nowhere.
size_t NodeIdOffset(uint32_t kind) {
  switch (kind) {
    case cupti::kKindConcurrentKernel:
      return offsetof(cupti::Kernel, graph_node_id);
    case cupti::kKindMemcpy:
      return offsetof(cupti::Memcpy, graph_node_id);
    case cupti::kKindMemcpy2:
      return offsetof(cupti::MemcpyPeer, graph_node_id);
    case cupti::kKindMemset:
      return offsetof(cupti::Memset, graph_node_id);
    default:
      return 0;
  }
}

bool IsNode(const uint8_t* record, size_t bytes) {
  uint32_t kind = 0;
  uint64_t node = 0;
  if (bytes < sizeof(kind)) return false;
  std::memcpy(&kind, record, sizeof(kind));
  const size_t offset = NodeIdOffset(kind);
  if (offset == 0 || bytes < offset + sizeof(node)) return false;
  std::memcpy(&node, record + offset, sizeof(node));
  return node != 0;
}

}  // namespace

bool ActivityDrain::Open(RingProducer* ring, const cupti::Functions* functions, CaptureGate* gate) {
  ring_ = ring;
  gate_ = gate;
  functions_ = functions;
  return names_.Open();
}

void ActivityDrain::Drain(uint8_t* buffer, size_t valid_bytes, bool may_wait) {
  if (valid_bytes == 0) return;
  const Locked locked(lock_);
  may_wait_ = may_wait;
  patience_ns_ = may_wait ? kPatienceNs : 0;
  // The size of a record is the distance to the next one, whatever its kind and version.
  uint8_t* const end = buffer + valid_bytes;
  uint8_t* record = nullptr;
  void* next = nullptr;
  cupti::Result result = cupti::kSuccess;
  while ((result = functions_->get_next_record(buffer, valid_bytes, &next)) == cupti::kSuccess) {
    auto* const position = static_cast<uint8_t*>(next);
    if (position < buffer || position >= end || (record != nullptr && position <= record)) {
      result = cupti::kErrorInvalidParameter;
      break;
    }
    if (record != nullptr) SendRecord(record, static_cast<size_t>(position - record));
    record = position;
  }
  if (record != nullptr) SendRecord(record, static_cast<size_t>(end - record));
  if (result != cupti::kErrorMaxLimitReached) ring_->Count(wire::kCounterCuptiErrors);
}

void ActivityDrain::SendOwn(uint8_t* record, size_t bytes) {
  const Locked locked(lock_);
  may_wait_ = true;
  patience_ns_ = kPatienceNs;
  SendRecord(record, bytes);
}

void ActivityDrain::SendRecord(uint8_t* record, size_t bytes) {
  if (IsNode(record, bytes)) has_nodes_.store(true, std::memory_order_relaxed);
  NoteEnd(record, bytes);
  if (!gate_->Keeps(record, bytes)) return;
  wire::ActivityMessage message{};
  message.name_id = TakeName(record, bytes);
  message.record_size_bytes = static_cast<uint32_t>(bytes);
  const bool fits = bytes + sizeof(message) <= wire::kMaxMessageBytes;
  ring_->Count(wire::kCounterActivities);
  const bool sent = fits && SendPatiently([&] {
                      return ring_->Send(wire::MessageKind::kActivity, message, record, bytes);
                    });
  if (!sent) ring_->Count(wire::kCounterActivitiesDropped);
}

void ActivityDrain::NoteEnd(const uint8_t* record, size_t bytes) {
  uint32_t kind = 0;
  uint64_t times[2] = {};
  if (bytes < sizeof(kind)) return;
  std::memcpy(&kind, record, sizeof(kind));
  const size_t offset = WorkStartOffset(kind);
  if (offset == 0 || bytes < offset + sizeof(times)) return;
  std::memcpy(times, record + offset, sizeof(times));
  if (times[0] == 0 || times[1] < times[0]) return;
  ended_count_.store(ended_count() + 1, std::memory_order_relaxed);
  if (times[1] - times[0] > longest_ns())
    longest_ns_.store(times[1] - times[0], std::memory_order_relaxed);
}

// The id of the record's name; its pointers become 0.
uint32_t ActivityDrain::TakeName(uint8_t* record, size_t bytes) {
  uint32_t kind = 0;
  if (bytes < sizeof(kind)) return 0;
  std::memcpy(&kind, record, sizeof(kind));
  const char* text = nullptr;
  const size_t name = NameOffset(kind);
  if (name != 0 && name + sizeof(text) <= bytes) {
    std::memcpy(&text, record + name, sizeof(text));
    std::memset(record + name, 0, sizeof(text));
  }
  const size_t other = OtherPointerOffset(kind);
  if (other != 0 && other + sizeof(text) <= bytes) std::memset(record + other, 0, sizeof(text));
  bool lost = false;
  const uint32_t id = names_.IdOf(text, &SendName, this, &lost);
  if (lost) ring_->Count(wire::kCounterOthersDropped);
  return id;
}

bool ActivityDrain::SendName(void* drain, uint32_t id, const char* text, size_t bytes) {
  auto* self = static_cast<ActivityDrain*>(drain);
  wire::NameMessage message{};
  message.name_id = id;
  message.text_bytes = static_cast<uint32_t>(bytes);
  return self->SendPatiently(
      [&] { return self->ring_->Send(wire::MessageKind::kName, message, text, bytes); });
}

template <typename Send>
bool ActivityDrain::SendPatiently(Send&& send) {
  while (true) {
    if (send()) {
      stalled_ = false;
      return true;
    }
    const uint32_t heartbeat = ring_->heartbeat();
    if (stalled_ && heartbeat == stalled_heartbeat_) return false;
    if (patience_ns_ < kWaitStepNs || ring_->closed()) {
      stalled_ = may_wait_;
      stalled_heartbeat_ = heartbeat;
      return false;
    }
    patience_ns_ -= kWaitStepNs;
    SleepNs(kWaitStepNs);
  }
}

}  // namespace xpu::inject
