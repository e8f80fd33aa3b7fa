#include "record/gpu/cupti_decode.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "cupti_inject/cupti_abi.h"

namespace xpu {
namespace {

using Bytes = std::span<const std::byte>;

std::string_view Text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Copies the fields that the record and the event share, matched by name.
#define RECORD(name, type)  \
  template <typename Event> \
  void Copy(const cupti::name& raw, Event& event) {
#define FIELD(c_type, member, offset, cupti_name, since)                         \
  if constexpr (requires { static_cast<decltype(event.member)>(raw.member); }) { \
    event.member = static_cast<decltype(event.member)>(raw.member);              \
  }
#define END(name, type) }
#include "cupti_inject/cupti_records.inc"

// Copies fields whose names in the record and in the event differ.
template <typename Raw, typename Event>
void CopyRest(const Raw&, size_t, Event&) {}

void CopyRest(const cupti::Kernel& raw, size_t size, Kernel& kernel) {
  // Records of this size (Kernel8) were the first with the 64-bit total.
  constexpr size_t kWideTotalEnd =
      offsetof(cupti::Kernel, local_memory_total_bytes_64) + sizeof(uint64_t);
  if (size >= kWideTotalEnd) kernel.local_memory_total_bytes = raw.local_memory_total_bytes_64;
}

void CopyRest(const cupti::MemcpyPeer&, size_t, Memcpy& copy) { copy.peer_to_peer = true; }

// `sizes`: of the known versions of the record, oldest first.
template <typename Raw, typename Event, typename Sizes>
DecodedActivity DecodeAs(Bytes record, const Sizes& sizes) {
  if (record.size() < *std::begin(sizes)) return {RawActivity{}, {}, {}};
  const auto raw = cupti::Load<Raw>(record.data(), record.size());
  Event event;
  Copy(raw, event);
  CopyRest(raw, record.size(), event);
  if constexpr (std::is_same_v<Event, Device>) {
    return {event, {}, record.subspan(offsetof(cupti::Device, uuid), sizeof(raw.uuid))};
  } else {
    event.record_size_bytes = static_cast<uint16_t>(std::min<size_t>(record.size(), UINT16_MAX));
    return {event, record.subspan(std::min(record.size(), sizeof(Raw))), {}};
  }
}

DecodedActivity DecodeByKind(Bytes record) {
  switch (cupti::Load<cupti::Record>(record.data(), record.size()).kind) {
#define KIND(kind, number, cupti_kind, name, event) \
  case cupti::kind:                                 \
    return DecodeAs<cupti::name, event>(record, cupti::k##name##Sizes);
#include "cupti_inject/cupti_records.inc"
    default:
      return {RawActivity{}, {}, {}};
  }
}

struct ActivityWriter {
  Bytes record;
  KeptText& name;
  InstanceId instance;
  const DecodedActivity& decoded;
  EventSink& sink;

  void operator()(RawActivity& raw) const {
    raw.instance = instance;
    raw.kind = cupti::Load<cupti::Record>(record.data(), record.size()).kind;
    raw.bytes = sink.Intern(Text(record));
    raw.name = sink.Intern(name);
    sink.Write(raw);
  }
  void operator()(Device& device) const {
    device.instance = instance;
    device.name = sink.Intern(name);
    device.uuid = sink.Intern(Text(decoded.uuid));
    sink.Write(device);
    RawActivity raw;
    (*this)(raw);
  }
  template <typename Event>
  void operator()(Event& event) const {
    if constexpr (requires { event.name; }) event.name = sink.Intern(name);
    if constexpr (requires { event.cache_path; }) event.cache_path = sink.Intern(name);
    event.instance = instance;
    event.tail = sink.Intern(Text(decoded.tail));
    sink.Write(event);
  }
};

// True for an operation on the GPU without valid times.
bool LacksTime(const ActivityEvent& event) {
  // CUPTI writes 0 for "no time", and end before start when its device buffers overflowed.
  const auto lacks = [](const auto* work) {
    return work != nullptr && (work->start_ns == 0 || work->end_ns < work->start_ns);
  };
  return lacks(std::get_if<Kernel>(&event)) || lacks(std::get_if<Memcpy>(&event)) ||
         lacks(std::get_if<Memset>(&event)) || lacks(std::get_if<GraphLaunch>(&event));
}

}  // namespace

DecodedActivity DecodeActivity(Bytes record) {
  // Too short to hold even its kind.
  if (record.size() < sizeof(uint32_t)) return {RawActivity{}, {}, {}};
  return DecodeByKind(record);
}

void WriteActivity(Bytes record, DecodedActivity& decoded, KeptText& name, InstanceId instance,
                   EventSink& sink) {
  if (LacksTime(decoded.event)) sink.losses().AddUnstored(LossKind::kInvalidTime, 1);
  std::visit(ActivityWriter{record, name, instance, decoded, sink}, decoded.event);
}

uint32_t CorrelationOf(const ActivityEvent& event) {
  if (const auto* kernel = std::get_if<Kernel>(&event)) return kernel->correlation_id;
  if (const auto* copy = std::get_if<Memcpy>(&event)) return copy->correlation_id;
  if (const auto* set = std::get_if<Memset>(&event)) return set->correlation_id;
  if (const auto* graph = std::get_if<GraphLaunch>(&event)) return graph->correlation_id;
  return 0;
}

}  // namespace xpu
