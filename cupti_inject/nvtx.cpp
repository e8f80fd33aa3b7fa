// What the copies of NVTX in the program call: every library that is built with NVTX has one, and
// each of them loads and calls InitializeInjectionNvtx2 at its first range.
//
// A call becomes one message with its text; what belongs together is for the report to find out. In
// a pause nothing begins; what began before it ends when it ends.
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

[[gnu::noinline]] void Send(wire::NvtxMessage& message, wire::NvtxKind kind, uint32_t domain,
                            TextView text) {
  const ActiveSession session;
  if (!session || session.ring().closed()) return;
  message.time_ns = MonotonicNs();
  message.kind = kind;
  message.domain = domain;
  message.tid = CurrentTid(CurrentThread());
  message.text_bytes = static_cast<uint32_t>(text.bytes);
  if (!session.ring().Send(wire::MessageKind::kNvtx, message, text.text, text.bytes)) {
    session.ring().Count(wire::kCounterNvtxDropped);
  }
}

void Send(wire::NvtxKind kind, uint32_t domain, TextView text, uint64_t range = 0) {
  wire::NvtxMessage message{};
  message.range = range;
  Send(message, kind, domain, text);
}

template <typename Use>
void WithText(TextView text, Use&& use) {
  use(text);
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
  WithText(attributes, [&](TextView text) { Send(message, kind, domain, text); });
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

void EndRange(uint32_t domain, uint64_t range) {
  if ((range & kLeftOut) == 0) Send(wire::NvtxKind::kEnd, domain, TextView{}, range);
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

int PopRange(uint32_t domain) {
  const Level at = Leave(domain);
  if (at.is_reported) Send(wire::NvtxKind::kPop, domain, TextView{});
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
