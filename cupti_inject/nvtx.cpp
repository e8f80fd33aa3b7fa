// What the copies of NVTX in the program call: every library that is built with NVTX has one, and
// each of them loads and calls InitializeInjectionNvtx2 at its first range.
//
// A call becomes one message with its text and payload; what belongs together is for the report to
// find out. In a pause nothing begins; what began before it ends when it ends.
//
// Payloads with a schema come by NVTX's payload extension, which looks for
// InitializeInjectionNvtxExtension. They are copied as they are; the report reads them by their
// schema.
#include <optional>

#include "cupti_inject/connection.h"
#include "cupti_inject/nvtx_abi.h"
#include "cupti_inject/thread_state.h"

namespace xpu::inject {
namespace {

Nvtx& State() { return g_process.nvtx; }

bool IsActive() { return State().active.load(std::memory_order_relaxed); }

// The session, where there is one that records ranges; it stays meanwhile. Not inlined: there are
// many functions of NVTX.
class ActiveSession {
 public:
  [[gnu::noinline]] ActiveSession() {
    if (!IsActive()) return;
    inside_.emplace(CurrentThread());
    is_there_ = IsActive();
  }
  [[gnu::noinline]] ~ActiveSession() = default;
  ActiveSession(const ActiveSession&) = delete;
  ActiveSession& operator=(const ActiveSession&) = delete;
  explicit operator bool() const { return is_there_; }
  CaptureGate& gate() const { return g_injection.gate; }
  RingProducer& ring() const { return g_injection.ring; }

 private:
  std::optional<Inside> inside_;
  bool is_there_ = false;
};

// A payload with a schema, in the program's memory.
struct PayloadView {
  const void* data = nullptr;
  size_t bytes = 0;
};

// What the functions of the payload extension are given in place of a text.
struct Payloads {
  const nvtx::PayloadData* first = nullptr;
  size_t count = 0;
};

[[gnu::noinline]] void Send(wire::NvtxMessage& message, wire::NvtxKind kind, uint32_t domain,
                            TextView text, PayloadView payload = {}) {
  const ActiveSession session;
  if (!session || session.ring().closed()) return;
  message.time_ns = MonotonicNs();
  message.kind = kind;
  message.domain = domain;
  message.tid = CurrentTid(CurrentThread());
  message.text_bytes = static_cast<uint32_t>(text.bytes);
  message.payload_bytes = static_cast<uint32_t>(payload.bytes);
  if (!session.ring().Send(wire::MessageKind::kNvtx, message, text.text, text.bytes, payload.data,
                           payload.bytes)) {
    session.ring().Count(wire::kCounterNvtxDropped);
  }
}

void Send(wire::NvtxKind kind, uint32_t domain, TextView text, uint64_t range = 0) {
  wire::NvtxMessage message{};
  message.range = range;
  Send(message, kind, domain, text);
}

// The first payload that has a schema and is not too large.
PayloadView ChooseInto(wire::NvtxMessage& message, Payloads payloads) {
  constexpr size_t kMostPayloads = 64;
  if (payloads.first == nullptr) return {};
  for (size_t i = 0; i < payloads.count && i < kMostPayloads; ++i) {
    const nvtx::PayloadData& data = payloads.first[i];
    if (data.schema == 0 || data.payload == nullptr) continue;
    if (data.size == 0 || data.size > wire::kMaxPayloadBytes) continue;
    message.payload_type = wire::kPayloadOfSchema;
    message.schema = data.schema;
    return {data.payload, data.size};
  }
  return {};
}

template <typename Use>
void WithText(TextView text, Use&& use) {
  use(text);
}

template <typename Use>
void WithText(Payloads, Use&& use) {
  use(TextView{});
}

void Send(wire::NvtxKind kind, uint32_t domain, Payloads payloads, uint64_t range = 0) {
  wire::NvtxMessage message{};
  message.range = range;
  const PayloadView payload = ChooseInto(message, payloads);
  Send(message, kind, domain, {}, payload);
}

template <typename Use>
void WithText(const nvtx::Attributes* attributes, Use&& use) {
  if (attributes == nullptr || attributes->size < sizeof(nvtx::Attributes)) return use(TextView{});
  switch (attributes->message_type) {
    case nvtx::kMessageText:
      return use(ViewOf(static_cast<const char*>(attributes->message)));
    case nvtx::kMessageWide:
      return use(NarrowText(static_cast<const wchar_t*>(attributes->message)).view());
    case nvtx::kMessageRegistered:
      return use(State().texts.Find(attributes->message));
    default:
      return use(TextView{});
  }
}

void Send(wire::NvtxKind kind, uint32_t domain, const nvtx::Attributes* attributes,
          uint64_t range = 0) {
  wire::NvtxMessage message{};
  message.range = range;
  if (attributes == nullptr || attributes->size < sizeof(nvtx::Attributes)) {
    return Send(message, kind, domain, {});
  }
  message.category = attributes->category;
  if (attributes->color_type == nvtx::kColorArgb) message.color = attributes->color;
  const int32_t type = attributes->payload_type;
  if (type >= nvtx::kPayloadUint64 && type <= nvtx::kPayloadFloat) {
    message.payload_type = static_cast<uint8_t>(type);
    message.payload = attributes->payload;
    if (type >= nvtx::kPayloadUint32) message.payload &= UINT32_MAX;
  }
  PayloadView payload;
  if (type == nvtx::kPayloadExtended && attributes->payload_count > 0) {
    payload = ChooseInto(message, {reinterpret_cast<const nvtx::PayloadData*>(attributes->payload),
                                   static_cast<size_t>(attributes->payload_count)});
  }
  WithText(attributes, [&](TextView text) { Send(message, kind, domain, text, payload); });
}

// Whether something that begins now is reported.
[[gnu::noinline]] bool IsOn() {
  const ActiveSession session;
  return session && session.gate().is_on();
}

// A range may open the gate before it is reported.
template <typename Text, typename Follow>
void FollowRange(Text text, Follow&& follow) {
  const ActiveSession session;
  if (session && session.gate().follows_ranges()) WithText(text, follow);
}

// A domain's handle is its number.
using DomainHandle = const void*;
uint32_t NumberOf(DomainHandle domain) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(domain));
}

// A range at its level, 0 for the outermost. What is not tracked is reported in pauses too.
struct Level {
  int level = nvtx::kNoTracking;
  bool is_reported = true;
};

Level Enter(uint32_t domain) {
  if (domain >= RangeLevels::kDomains) return {};
  RangeLevels& levels = CurrentThread().ranges;
  const uint32_t level = levels.open[domain]++;
  if (level >= RangeLevels::kLevels) return {static_cast<int>(level), true};
  const bool is_reported = IsOn();
  const uint32_t bit = 1u << level;
  uint16_t& left_out = levels.left_out[domain];
  left_out = static_cast<uint16_t>(is_reported ? left_out & ~bit : left_out | bit);
  return {static_cast<int>(level), is_reported};
}

Level Leave(uint32_t domain) {
  RangeLevels& levels = CurrentThread().ranges;
  if (domain >= RangeLevels::kDomains || levels.open[domain] == 0) return {};
  const uint32_t level = --levels.open[domain];
  const bool is_reported =
      level >= RangeLevels::kLevels || (levels.left_out[domain] >> level & 1) == 0;
  return {static_cast<int>(level), is_reported};
}

// In the number of a range: it began in a pause.
constexpr uint64_t kLeftOut = uint64_t{1} << 63;

template <typename Text>
uint64_t StartRange(uint32_t domain, Text text) {
  const uint64_t range = State().next_range.fetch_add(1, std::memory_order_relaxed) + 1;
  FollowRange(text, [&](TextView name) { g_injection.gate.Start(domain, name, range); });
  if (!IsOn()) return range | kLeftOut;
  Send(wire::NvtxKind::kStart, domain, text, range);
  return range;
}

template <typename Text = TextView>
void EndRange(uint32_t domain, uint64_t range, Text text = {}) {
  if ((range & kLeftOut) == 0) Send(wire::NvtxKind::kEnd, domain, text, range);
  FollowRange(TextView{}, [&](TextView) { g_injection.gate.End(range & ~kLeftOut); });
}

template <typename Text>
int PushRange(uint32_t domain, Text text) {
  OpenCapture& capture = CurrentThread().capture;
  FollowRange(text, [&](TextView name) { g_injection.gate.Push(domain, name, capture); });
  const Level at = Enter(domain);
  if (at.is_reported) Send(wire::NvtxKind::kPush, domain, text);
  return at.level;
}

template <typename Text = TextView>
int PopRange(uint32_t domain, Text text = {}) {
  const Level at = Leave(domain);
  if (at.is_reported) Send(wire::NvtxKind::kPop, domain, text);
  OpenCapture& capture = CurrentThread().capture;
  FollowRange(TextView{}, [&](TextView) { g_injection.gate.Pop(domain, capture); });
  return at.level;
}

template <typename Text>
void Mark(uint32_t domain, Text text) {
  if (IsOn()) Send(wire::NvtxKind::kMark, domain, text);
}

void NameCategory(uint32_t domain, uint32_t category, TextView name) {
  wire::NvtxMessage message{};
  message.category = category;
  Send(message, wire::NvtxKind::kCategoryName, domain, name);
}

void NameThread(uint32_t thread, TextView name) {
  Send(wire::NvtxKind::kThreadName, 0, name, thread);
}

DomainHandle CreateDomain(TextView name) {
  const uint32_t domain = State().next_domain.fetch_add(1, std::memory_order_relaxed) + 1;
  const ActiveSession session;
  if (session) session.gate().NameDomain(domain, name);
  Send(wire::NvtxKind::kDomainName, domain, name);
  return reinterpret_cast<DomainHandle>(uintptr_t{domain});
}

// ---- schemas of payloads

void SendEntry(wire::NvtxSchemaEntryMessage& message, const char* name) {
  const ActiveSession session;
  if (!session || session.ring().closed()) return;
  const TextView text = ViewOf(name);
  message.text_bytes = static_cast<uint32_t>(text.bytes);
  if (!session.ring().Send(wire::MessageKind::kNvtxSchemaEntry, message, text.text, text.bytes)) {
    session.ring().Count(wire::kCounterNvtxDropped);
  }
}

uint64_t SchemaId(bool is_given, uint64_t given) {
  if (is_given && given != 0) return given;
  return nvtx::kFirstDynamicSchema + State().next_schema.fetch_add(1, std::memory_order_relaxed);
}

uint64_t RegisterSchema(uint32_t domain, const nvtx::SchemaAttributes* schema) {
  constexpr uint64_t kNeeded = nvtx::kSchemaHasEntries | nvtx::kSchemaHasEntryCount;
  if (schema == nullptr || (schema->fields & kNeeded) != kNeeded || schema->entries == nullptr) {
    return 0;
  }
  wire::NvtxSchemaEntryMessage message{};
  message.domain = domain;
  message.schema = SchemaId((schema->fields & nvtx::kSchemaHasId) != 0, schema->schema);
  if ((schema->fields & nvtx::kSchemaHasSize) != 0) message.size_bytes = schema->size;
  for (; message.entry < schema->entry_count && message.entry < wire::kMaxSchemaEntries;
       ++message.entry) {
    const nvtx::SchemaEntry& entry = schema->entries[message.entry];
    message.type = entry.type;
    message.flags = entry.flags;
    message.offset_bytes = entry.offset;
    message.array_length = entry.array_length;
    SendEntry(message, entry.name);
  }
  return message.schema;
}

uint64_t RegisterEnum(uint32_t domain, const nvtx::EnumAttributes* type) {
  constexpr uint64_t kNeeded = nvtx::kEnumHasEntries | nvtx::kEnumHasEntryCount;
  if (type == nullptr || (type->fields & kNeeded) != kNeeded || type->entries == nullptr) return 0;
  wire::NvtxSchemaEntryMessage message{};
  message.domain = domain;
  message.is_enumeration = 1;
  message.schema = SchemaId((type->fields & nvtx::kEnumHasId) != 0, type->schema);
  if ((type->fields & nvtx::kEnumHasSize) != 0) message.size_bytes = type->size;
  for (; message.entry < type->entry_count && message.entry < wire::kMaxSchemaEntries;
       ++message.entry) {
    message.value = type->entries[message.entry].value;
    SendEntry(message, type->entries[message.entry].name);
  }
  return message.schema;
}

// ---- the functions that the program calls, by module and id

using Attributes = const nvtx::Attributes*;
using Wide = const wchar_t*;

template <typename Function>
void Put(nvtx::FunctionPointer** table, uint32_t size, uint32_t id, Function function) {
  if (id < size && table[id] != nullptr) {
    *table[id] = reinterpret_cast<nvtx::FunctionPointer>(function);
  }
}

void PutCore(nvtx::FunctionPointer** table, uint32_t size) {
  const auto put = [&](uint32_t id, auto function) { Put(table, size, id, function); };
  put(
      nvtx::kMarkEx, +[](Attributes text) { Mark(0, text); });
  put(
      nvtx::kMarkA, +[](const char* text) { Mark(0, ViewOf(text)); });
  put(
      nvtx::kMarkW, +[](Wide text) { Mark(0, NarrowText(text).view()); });
  put(
      nvtx::kRangeStartEx, +[](Attributes text) { return StartRange(0, text); });
  put(
      nvtx::kRangeStartA, +[](const char* text) { return StartRange(0, ViewOf(text)); });
  put(
      nvtx::kRangeStartW, +[](Wide text) { return StartRange(0, NarrowText(text).view()); });
  put(
      nvtx::kRangeEnd, +[](uint64_t range) { EndRange(0, range); });
  put(
      nvtx::kRangePushEx, +[](Attributes text) { return PushRange(0, text); });
  put(
      nvtx::kRangePushA, +[](const char* text) { return PushRange(0, ViewOf(text)); });
  put(
      nvtx::kRangePushW, +[](Wide text) { return PushRange(0, NarrowText(text).view()); });
  put(
      nvtx::kRangePop, +[]() { return PopRange(0); });
  put(
      nvtx::kNameCategoryA,
      +[](uint32_t category, const char* name) { NameCategory(0, category, ViewOf(name)); });
  put(
      nvtx::kNameCategoryW,
      +[](uint32_t category, Wide name) { NameCategory(0, category, NarrowText(name).view()); });
  put(
      nvtx::kNameOsThreadA,
      +[](uint32_t thread, const char* name) { NameThread(thread, ViewOf(name)); });
  put(
      nvtx::kNameOsThreadW,
      +[](uint32_t thread, Wide name) { NameThread(thread, NarrowText(name).view()); });
}

void PutDomains(nvtx::FunctionPointer** table, uint32_t size) {
  const auto put = [&](uint32_t id, auto function) { Put(table, size, id, function); };
  put(
      nvtx::kDomainMarkEx,
      +[](DomainHandle domain, Attributes text) { Mark(NumberOf(domain), text); });
  put(
      nvtx::kDomainRangeStartEx,
      +[](DomainHandle domain, Attributes text) { return StartRange(NumberOf(domain), text); });
  put(
      nvtx::kDomainRangeEnd,
      +[](DomainHandle domain, uint64_t range) { EndRange(NumberOf(domain), range); });
  put(
      nvtx::kDomainRangePushEx,
      +[](DomainHandle domain, Attributes text) { return PushRange(NumberOf(domain), text); });
  put(
      nvtx::kDomainRangePop, +[](DomainHandle domain) { return PopRange(NumberOf(domain)); });
  put(
      nvtx::kDomainNameCategoryA, +[](DomainHandle domain, uint32_t category, const char* name) {
        NameCategory(NumberOf(domain), category, ViewOf(name));
      });
  put(
      nvtx::kDomainNameCategoryW, +[](DomainHandle domain, uint32_t category, Wide name) {
        NameCategory(NumberOf(domain), category, NarrowText(name).view());
      });
  put(
      nvtx::kDomainRegisterStringA,
      +[](DomainHandle, const char* text) { return State().texts.Add(ViewOf(text)); });
  put(
      nvtx::kDomainRegisterStringW,
      +[](DomainHandle, Wide text) { return State().texts.Add(NarrowText(text).view()); });
  put(
      nvtx::kDomainCreateA, +[](const char* name) { return CreateDomain(ViewOf(name)); });
  put(
      nvtx::kDomainCreateW, +[](Wide name) { return CreateDomain(NarrowText(name).view()); });
}

void PutPayloads(const nvtx::ExtensionSegment& segment) {
  const auto put = [&](uint32_t id, auto function) {
    if (id < segment.slot_count) segment.slots[id] = reinterpret_cast<intptr_t>(function);
  };
  using Data = const nvtx::PayloadData*;
  put(
      nvtx::kSchemaRegister, +[](DomainHandle domain, const nvtx::SchemaAttributes* schema) {
        return RegisterSchema(NumberOf(domain), schema);
      });
  put(
      nvtx::kEnumRegister, +[](DomainHandle domain, const nvtx::EnumAttributes* type) {
        return RegisterEnum(NumberOf(domain), type);
      });
  put(
      nvtx::kMarkPayload, +[](DomainHandle domain, Data first, size_t count) {
        Mark(NumberOf(domain), Payloads{first, count});
      });
  put(
      nvtx::kRangePushPayload, +[](DomainHandle domain, Data first, size_t count) {
        return PushRange(NumberOf(domain), Payloads{first, count});
      });
  put(
      nvtx::kRangePopPayload, +[](DomainHandle domain, Data first, size_t count) {
        return PopRange(NumberOf(domain), Payloads{first, count});
      });
  put(
      nvtx::kRangeStartPayload, +[](DomainHandle domain, Data first, size_t count) {
        return StartRange(NumberOf(domain), Payloads{first, count});
      });
  put(
      nvtx::kRangeEndPayload, +[](DomainHandle domain, uint64_t range, Data first, size_t count) {
        EndRange(NumberOf(domain), range, Payloads{first, count});
      });
}

bool AttachExtension(const nvtx::ExtensionModule* module) {
  if (module == nullptr || module->struct_size < sizeof(nvtx::ExtensionModule)) return false;
  if (module->module != nvtx::kModulePayload) return true;
  if (module->segment_count == 0 || module->segments == nullptr) return true;
  if (module->segments->slots != nullptr) PutPayloads(*module->segments);
  return true;
}

bool Attach(nvtx::GetExportTable get_export_table) {
  const auto* callbacks =
      static_cast<const nvtx::Callbacks*>(get_export_table(nvtx::kTableCallbacks));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(nvtx::Callbacks)) return false;
  nvtx::FunctionPointer** table = nullptr;
  uint32_t size = 0;
  if (callbacks->get_functions(nvtx::kModuleCore, &table, &size) != 1) return false;
  PutCore(table, size);
  // Not in versions before domains.
  if (callbacks->get_functions(nvtx::kModuleDomains, &table, &size) == 1) PutDomains(table, size);
  return true;
}

}  // namespace
}  // namespace xpu::inject

// 1 is success: else NVTX's functions do nothing.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    xpu::nvtx::GetExportTable get_export_table) {
  using namespace xpu::inject;
  return ConnectOnce(nullptr) != nullptr && Attach(get_export_table) ? 1 : 0;
}

// Likewise, for the functions of an extension of NVTX.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    const xpu::nvtx::ExtensionModule* module) {
  using namespace xpu::inject;
  return ConnectOnce(nullptr) != nullptr && AttachExtension(module) ? 1 : 0;
}
