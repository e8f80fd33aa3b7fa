#include "cupti_inject/setup.h"

#include <cstdio>
#include <cstring>

#include "cupti_inject/activity_kinds.h"
#include "cupti_inject/callbacks.h"
#include "cupti_inject/cupti_versions.h"
#include "cupti_inject/graph_nodes.h"
#include "cupti_inject/watched_calls.h"

namespace xpu::inject {
namespace {

// Ids are dense with gaps of a few; no table has been longer than 900.
constexpr uint32_t kMaxCallbackId = 4096;
constexpr uint32_t kMaxCallbackIdGap = 256;

const char* ResultText(const Injection& self, cupti::Result result) {
  const char* text = nullptr;
  if (self.cupti.get_result_string(result, &text) != cupti::kSuccess || text == nullptr) {
    return "unknown error";
  }
  return text;
}

// True for success; else a note that `what` does not work.
bool Try(Injection& self, const char* what, cupti::Result result) {
  if (result == cupti::kSuccess) return true;
  char text[256];
  std::snprintf(text, sizeof(text), "%s: %s", what, ResultText(self, result));
  SendDetail(self, wire::DetailKind::kNote, static_cast<uint32_t>(result), text);
  return false;
}

// Asking first whether the GPU runs dry was rejected: cuStreamQuery of the legacy stream breaks the
// capture of a graph that another thread makes in a blocking stream (an H200, in all modes).
class FirstCall {
 public:
  explicit FirstCall(Injection& self) : self_(self) {
    Set(MonotonicNs(), wire::State::kStartsCupti);
  }
  FirstCall(const FirstCall&) = delete;
  FirstCall& operator=(const FirstCall&) = delete;
  ~FirstCall() { Set(0, wire::State::kConnected); }

 private:
  void Set(uint64_t since_ns, wire::State state) {
    if (!self_.attached) return;
    g_process.first_call_ns.store(since_ns);
    self_.ring.SetState(state);
  }

  Injection& self_;
};

// The first call to CUPTI that matters: it alone tells whether another tool is there.
bool Subscribe(Injection& self, char* reason, size_t reason_size) {
  char holder[128] = "";
  const bool had_cupti = g_process.has_cupti.exchange(true);  // before a fork can copy it
  cupti::Result result;
  const FirstCall first(self);
  void* const mark = reinterpret_cast<void*>(uintptr_t{self.number});
  if (self.cupti.subscribe_v2 != nullptr) {
    cupti::SubscriberParameters parameters{};
    parameters.struct_size = sizeof(parameters);
    parameters.name = "xpu";
    parameters.previous_name = holder;
    parameters.previous_name_size = sizeof(holder);
    result = self.cupti.subscribe_v2(&self.subscriber, &OnCallback, mark, &parameters);
  } else {
    result = self.cupti.subscribe(&self.subscriber, &OnCallback, mark);
  }
  if (result == cupti::kSuccess) return true;
  g_process.has_cupti.store(had_cupti);
  holder[sizeof(holder) - 1] = '\0';
  if (result == cupti::kErrorMultipleSubscribers) {
    std::snprintf(reason, reason_size, "another tool in this program holds CUPTI%s%s",
                  holder[0] == '\0' ? "" : ": ", holder);
  } else {
    std::snprintf(reason, reason_size, "cuptiSubscribe: %s", ResultText(self, result));
  }
  return false;
}

void SetAttribute(Injection& self, const char* what, uint32_t attribute, uint8_t value) {
  size_t size = sizeof(value);
  Try(self, what, self.cupti.set_attribute(attribute, &size, &value));
}

void LimitDeviceBuffers(Injection& self) {
  size_t buffers = self.mapped.header->device_buffers;
  if (buffers == 0) return;
  size_t size = sizeof(buffers);
  Try(self, "limit of device buffers",
      self.cupti.set_attribute(cupti::kAttributeDeviceBufferPoolLimit, &size, &buffers));
}

// In host memory the times of finished work survive a fault of the GPU, so that the first operation
// without one is the one that faulted. CUPTI refuses it where GPUs use confidential computing.
void KeepTimesOnHost(Injection& self) {
  uint8_t value = 1;
  size_t size = sizeof(value);
  const cupti::Result result =
      self.cupti.set_attribute(cupti::kAttributePinnedDeviceBuffers, &size, &value);
  if (result == cupti::kSuccess) SendDetail(self, wire::DetailKind::kTimesOnHost, 0, "");
}

bool EnableActivities(Injection& self, char* reason, size_t reason_size) {
  const cupti::Functions& cupti = self.cupti;
  Try(self, "system thread ids", cupti.set_thread_id_type(cupti::kThreadIdSystem));
  SetAttribute(self, "zeroed activity buffers", cupti::kAttributeZeroedOutBuffer, 1);
  LimitDeviceBuffers(self);
  KeepTimesOnHost(self);
  const cupti::Result result = cupti.register_callbacks(&OnBufferRequested, &OnBufferCompleted);
  if (result != cupti::kSuccess) {
    std::snprintf(reason, reason_size, "cuptiActivityRegisterCallbacks: %s",
                  ResultText(self, result));
    return false;
  }
  if ((self.settings & wire::kSettingMemory) != 0) {
    Try(self, "memory records", cupti.enable_kind(cupti::kKindMemory2));
  }
  uint32_t enabled = 0;
  const bool graph_nodes = (self.settings & wire::kSettingGraphNodes) != 0;
  for (const ActivityKind& kind : kActivityKinds) {
    if (kind.kind == cupti::kKindGraphTrace && graph_nodes) continue;
    if (self.intervals.is_open() && GraphIntervals::IsOffDuringReplays(kind.kind)) continue;
    char what[64];
    std::snprintf(what, sizeof(what), "%s records", kind.name);
    if (Try(self, what, cupti.enable_kind(kind.kind))) ++enabled;
  }
  if (enabled == 0) std::snprintf(reason, reason_size, "CUPTI gives no activity records here");
  return enabled > 0;
}

void SendCallbackName(Injection& self, uint32_t domain, uint32_t callback_id, const char* name) {
  wire::CallbackNameMessage message{};
  message.domain = domain;
  message.callback_id = callback_id;
  message.text_bytes = static_cast<uint32_t>(strnlen(name, wire::kMaxNameBytes));
  if (!self.ring.Send(wire::MessageKind::kCallbackName, message, name, message.text_bytes)) {
    self.ring.Count(wire::kCounterOthersDropped);
  }
}

void NoteVersions(const char* function, const char* name, uint32_t callback_id, uint32_t* ids) {
  if (std::strncmp(name, function, std::strlen(function)) != 0) return;
  ids[ids[0] == 0 ? 0 : 1] = callback_id;
}

// True: the call opens or closes the gate, and is reported in no other way.
bool SwitchesProfiler(Injection& self, const char* name, uint32_t id, uint32_t domain) {
  const bool starts = StartsProfiler(domain, name);
  if ((self.settings & wire::kSettingProfilerApi) == 0) return false;
  if (!starts && !StopsProfiler(domain, name)) return false;
  (starts ? self.profiler_starts : self.profiler_stops).Add(domain, id);
  Try(self, name, self.cupti.enable_callback(1, self.subscriber, domain, id));
  return true;
}

// Returns how many callbacks of `domain` are on.
uint32_t EnableCallbacks(Injection& self, uint32_t domain) {
  const bool memory = (self.settings & wire::kSettingMemory) != 0;
  uint32_t enabled = 0;
  for (uint32_t id = 1, last = 0; id <= kMaxCallbackId && id - last <= kMaxCallbackIdGap; ++id) {
    const char* name = nullptr;
    if (self.cupti.get_callback_name(domain, id, &name) != cupti::kSuccess) continue;
    last = id;
    const bool allocates = memory && AllocatesMemory(domain, name);
    if (allocates) self.memory_calls.Add(domain, id);
    if (SwitchesProfiler(self, name, id, domain)) continue;
    if (!IsWatched(domain, name) && !allocates) continue;
    if (!Try(self, name, self.cupti.enable_callback(1, self.subscriber, domain, id))) continue;
    self.waits.Add(domain, id, name);
    SendCallbackName(self, domain, id, name);
    if (domain == cupti::kDomainDriver) {
      NoteVersions("cuGraphExecUpdate", name, id, self.graph_update_ids);
      NoteVersions("cuGraphLaunch", name, id, self.graph_launch_ids);
    }
    ++enabled;
  }
  return enabled;
}

// Where it does not work the rest of the recording goes on.
void OpenSampling(Injection& self) {
  if ((self.settings & wire::kSettingGpuSamples) == 0) return;
  if (cupti::CudaVersionOfCupti(self.cupti_version) < cupti::kFirstWithPcSampling) {
    return SendDetail(self, wire::DetailKind::kNotSampled, 0,
                      "samples of GPU code need CUPTI of CUDA 12.4 or newer");
  }
  char reason[128] = "";
  if (!self.sampling.Open(self.mapped.header, &self.ring, &self.cupti, reason, sizeof(reason))) {
    return SendDetail(self, wire::DetailKind::kNotSampled, 0, reason);
  }
  for (const uint32_t id : {cupti::kResourceContextDestroyStarting, cupti::kResourceModuleLoaded,
                            cupti::kResourceModuleUnloadStarting}) {
    Try(self, "callbacks of modules",
        self.cupti.enable_callback(1, self.subscriber, cupti::kDomainResource, id));
  }
}

}  // namespace

void SendDetail(Injection& self, wire::DetailKind kind, uint64_t number, const char* text) {
  wire::DetailMessage message{};
  message.detail = kind;
  message.number = number;
  message.text_bytes = static_cast<uint32_t>(strnlen(text, wire::kMaxNameBytes));
  if (!self.ring.Send(wire::MessageKind::kDetail, message, text, message.text_bytes)) {
    self.ring.Count(wire::kCounterOthersDropped);
  }
}

bool SetUpCupti(Injection& self, const char* chosen_cupti, MayGoOn may_go_on, char* reason,
                size_t reason_size) {
  const auto goes_on = [&](SetUpStep step) {
    if (may_go_on(step)) return true;
    std::snprintf(reason, reason_size, "%s", kExitedMeanwhile);
    return false;
  };
  const uint32_t driver_version = DriverVersion();
  if (driver_version != 0) SendDetail(self, wire::DetailKind::kDriverVersion, driver_version, "");
  LoadedCupti loaded;
  if (!LoadCupti(chosen_cupti, driver_version, &loaded, reason, reason_size) ||
      !goes_on(SetUpStep::kLoaded)) {
    return false;
  }
  self.cupti = loaded.functions;
  self.cupti_version = loaded.version;
  self.wait_describer.Open(&self.cupti, WaitDescriber::FindStreamContext());
  SendDetail(self, wire::DetailKind::kCuptiPath, loaded.version, loaded.path);
  if (loaded.note[0] != '\0') SendDetail(self, wire::DetailKind::kNote, 0, loaded.note);
  if (!self.drain.Open(&self.ring, &self.cupti, &self.gate)) {
    std::snprintf(reason, reason_size, "no memory for the table of names");
    return false;
  }
  if (!Subscribe(self, reason, reason_size) || !goes_on(SetUpStep::kSubscribed)) return false;
  if (!EnableActivities(self, reason, reason_size)) {
    TearDownCupti(self);
    return false;
  }
  // The runtime's callbacks too: the call that the program made is the one to show.
  const bool calls = EnableCallbacks(self, cupti::kDomainDriver) > 0;
  EnableCallbacks(self, cupti::kDomainRuntime);
  if (!calls) SendDetail(self, wire::DetailKind::kNote, 0, "CUPTI names no callbacks of launches");
  if (!WatchGraphNodes(self)) {
    SendDetail(self, wire::DetailKind::kNote, 0, "this CUPTI does not say what adds graph nodes");
  }
  OpenSampling(self);
  if (self.intervals.is_open()) {
    Try(self, "context destruction callbacks",
        self.cupti.enable_callback(1, self.subscriber, cupti::kDomainResource,
                                   cupti::kResourceContextDestroyStarting));
  }
  if (!Try(self, "context callbacks",
           self.cupti.enable_callback(1, self.subscriber, cupti::kDomainResource,
                                      cupti::kResourceContextCreated))) {
    self.context_exists.store(true, std::memory_order_release);
  }
  return true;
}

void TearDownCupti(const Injection& self) {
  if (self.sampling.has_failed()) return;
  DisableActivities(self.cupti);
  self.cupti.unsubscribe(self.subscriber);
}

}  // namespace xpu::inject
