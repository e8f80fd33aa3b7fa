// What the copies of NVTX in the program call: every library that is built with NVTX has one, and
// each of them loads and calls InitializeInjectionNvtx2 at its first range.
//
// A call becomes one message with its text; what belongs together is for the report to find out.
#include "cupti_inject/injection.h"
#include "cupti_inject/nvtx_abi.h"

namespace xpu::inject {
namespace {

Nvtx& State() { return g_injection.nvtx; }

void Send(wire::NvtxMessage& message, wire::NvtxKind kind, uint32_t domain, TextView text) {
  Injection& self = g_injection;
  if (!self.nvtx.active.load(std::memory_order_relaxed) || self.ring.closed()) return;
  message.time_ns = MonotonicNs();
  message.kind = kind;
  message.domain = domain;
  message.tid = CurrentTid(CurrentThread());
  message.text_bytes = static_cast<uint32_t>(text.bytes);
  if (!self.ring.Send(wire::MessageKind::kNvtx, message, text.text, text.bytes)) {
    self.ring.Count(wire::kCounterNvtxDropped);
  }
}

void Send(wire::NvtxKind kind, uint32_t domain, TextView text, uint64_t range = 0) {
  wire::NvtxMessage message{};
  message.range = range;
  Send(message, kind, domain, text);
}

void Send(wire::NvtxKind kind, uint32_t domain, const nvtx::Attributes* attributes,
          uint64_t range = 0) {
  wire::NvtxMessage message{};
  message.range = range;
  if (attributes == nullptr || attributes->size < sizeof(nvtx::Attributes)) {
    Send(message, kind, domain, {});
    return;
  }
  message.category = attributes->category;
  if (attributes->color_type == nvtx::kColorArgb) message.color = attributes->color;
  const int32_t type = attributes->payload_type;
  if (type >= nvtx::kPayloadUint64 && type <= nvtx::kPayloadFloat) {
    message.payload_type = static_cast<uint8_t>(type);
    message.payload = attributes->payload;
    if (type >= nvtx::kPayloadUint32) message.payload &= UINT32_MAX;
  }
  switch (attributes->message_type) {
    case nvtx::kMessageText:
      Send(message, kind, domain, ViewOf(static_cast<const char*>(attributes->message)));
      return;
    case nvtx::kMessageWide:
      Send(message, kind, domain,
           NarrowText(static_cast<const wchar_t*>(attributes->message)).view());
      return;
    case nvtx::kMessageRegistered:
      Send(message, kind, domain, State().texts.Find(attributes->message));
      return;
    default:
      Send(message, kind, domain, {});
  }
}

// A domain's handle is its number.
using DomainHandle = const void*;
uint32_t NumberOf(DomainHandle domain) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(domain));
}

// The level at which a range begins or ends, 0 for the outermost.
int Enter(uint32_t domain) {
  RangeLevels& levels = CurrentThread().ranges;
  return domain < RangeLevels::kDomains ? levels.open[domain]++ : nvtx::kNoTracking;
}

int Leave(uint32_t domain) {
  RangeLevels& levels = CurrentThread().ranges;
  if (domain >= RangeLevels::kDomains || levels.open[domain] == 0) return nvtx::kNoTracking;
  return --levels.open[domain];
}

template <typename Text>
uint64_t StartRange(uint32_t domain, Text text) {
  const uint64_t range = State().next_range.fetch_add(1, std::memory_order_relaxed) + 1;
  Send(wire::NvtxKind::kStart, domain, text, range);
  return range;
}

void EndRange(uint32_t domain, uint64_t range) {
  Send(wire::NvtxKind::kEnd, domain, TextView{}, range);
}

template <typename Text>
int PushRange(uint32_t domain, Text text) {
  Send(wire::NvtxKind::kPush, domain, text);
  return Enter(domain);
}

int PopRange(uint32_t domain) {
  Send(wire::NvtxKind::kPop, domain, TextView{});
  return Leave(domain);
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
  Send(wire::NvtxKind::kDomainName, domain, name);
  return reinterpret_cast<DomainHandle>(uintptr_t{domain});
}

// ---- the functions that the program calls, by module and id

using Attributes = const nvtx::Attributes*;
using Wide = const wchar_t*;
TextView Narrow(const NarrowText& text) { return text.view(); }

template <typename Function>
void Put(nvtx::FunctionPointer** table, uint32_t size, uint32_t id, Function function) {
  if (id < size && table[id] != nullptr) {
    *table[id] = reinterpret_cast<nvtx::FunctionPointer>(function);
  }
}

void PutCore(nvtx::FunctionPointer** table, uint32_t size) {
  const auto put = [&](uint32_t id, auto function) { Put(table, size, id, function); };
  put(
      nvtx::kMarkEx, +[](Attributes text) { Send(wire::NvtxKind::kMark, 0, text); });
  put(
      nvtx::kMarkA, +[](const char* text) { Send(wire::NvtxKind::kMark, 0, ViewOf(text)); });
  put(
      nvtx::kMarkW, +[](Wide text) { Send(wire::NvtxKind::kMark, 0, Narrow(NarrowText(text))); });
  put(
      nvtx::kRangeStartEx, +[](Attributes text) { return StartRange(0, text); });
  put(
      nvtx::kRangeStartA, +[](const char* text) { return StartRange(0, ViewOf(text)); });
  put(
      nvtx::kRangeStartW, +[](Wide text) { return StartRange(0, Narrow(NarrowText(text))); });
  put(
      nvtx::kRangeEnd, +[](uint64_t range) { EndRange(0, range); });
  put(
      nvtx::kRangePushEx, +[](Attributes text) { return PushRange(0, text); });
  put(
      nvtx::kRangePushA, +[](const char* text) { return PushRange(0, ViewOf(text)); });
  put(
      nvtx::kRangePushW, +[](Wide text) { return PushRange(0, Narrow(NarrowText(text))); });
  put(
      nvtx::kRangePop, +[]() { return PopRange(0); });
  put(
      nvtx::kNameCategoryA,
      +[](uint32_t category, const char* name) { NameCategory(0, category, ViewOf(name)); });
  put(
      nvtx::kNameCategoryW,
      +[](uint32_t category, Wide name) { NameCategory(0, category, Narrow(NarrowText(name))); });
  put(
      nvtx::kNameOsThreadA,
      +[](uint32_t thread, const char* name) { NameThread(thread, ViewOf(name)); });
  put(
      nvtx::kNameOsThreadW,
      +[](uint32_t thread, Wide name) { NameThread(thread, Narrow(NarrowText(name))); });
}

void PutDomains(nvtx::FunctionPointer** table, uint32_t size) {
  const auto put = [&](uint32_t id, auto function) { Put(table, size, id, function); };
  put(
      nvtx::kDomainMarkEx, +[](DomainHandle domain, Attributes text) {
        Send(wire::NvtxKind::kMark, NumberOf(domain), text);
      });
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
        NameCategory(NumberOf(domain), category, Narrow(NarrowText(name)));
      });
  put(
      nvtx::kDomainRegisterStringA,
      +[](DomainHandle, const char* text) { return State().texts.Add(ViewOf(text)); });
  put(
      nvtx::kDomainRegisterStringW,
      +[](DomainHandle, Wide text) { return State().texts.Add(Narrow(NarrowText(text))); });
  put(
      nvtx::kDomainCreateA, +[](const char* name) { return CreateDomain(ViewOf(name)); });
  put(
      nvtx::kDomainCreateW, +[](Wide name) { return CreateDomain(Narrow(NarrowText(name))); });
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
  return ConnectOnce(nullptr) && Attach(get_export_table) ? 1 : 0;
}
