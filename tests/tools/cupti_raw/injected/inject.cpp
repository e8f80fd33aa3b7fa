// libxpu_cupti_raw.so: loaded by the CUDA driver (CUDA_INJECTION64_PATH), writes down what CUPTI
// does in this process, see cupti_raw.h for the file. A tool for developers, not part of the
// product: it locks and allocates in callbacks, so its timings are not those of xpu.
//
//   CUPTI_RAW_OUT            the file, %p becomes the pid. Without it the library does nothing
//   CUPTI_RAW_KINDS          comma list of activity kinds by name or number, "default", "-name"
//   CUPTI_RAW_CALLBACKS      comma list of driver, runtime, resource, synchronize, state
//   CUPTI_RAW_RUNTIME_CBIDS  comma list for cuptiActivityEnableRuntimeApi
//   CUPTI_RAW_DRIVER_CBIDS   comma list for cuptiActivityEnableDriverApi
//   CUPTI_RAW_THREAD_ID      system (default) or default
//   CUPTI_RAW_BUFFER_BYTES   size of an activity buffer, default 256 KiB
//   CUPTI_RAW_FLUSH_MS       period of cuptiActivityFlushAll(0), default 100, 0 is never
//   CUPTI_RAW_FORCE_AT_MS    one forced flush that long after the first context, default never
//   CUPTI_RAW_ALL_SYNC       1: cuptiActivityEnableAllSyncRecords
//   CUPTI_RAW_LATENCY        1: cuptiActivityEnableLatencyTimestamps
//   CUPTI_RAW_PER_THREAD     0 or 1: CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER
//   CUPTI_RAW_ZEROED         1: CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER
//   CUPTI_RAW_SUBSCRIBE      v1 (default) or v2: which cuptiSubscribe comes first
//   CUPTI_RAW_MAX_BYTES      largest file, default 4 MiB; what is left out is counted in kSummary
//   XPU_CUPTI_LIB            the libcupti to open, instead of looking for one
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cupti.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include "buffers.h"
#include "callbacks.h"
#include "flusher.h"
#include "state.h"

namespace xpu::cupti_raw {
namespace {

struct KindName {
  const char* name;
  CUpti_ActivityKind kind;
};

constexpr KindName kKindNames[] = {
    {"memcpy", CUPTI_ACTIVITY_KIND_MEMCPY},
    {"memset", CUPTI_ACTIVITY_KIND_MEMSET},
    {"serial_kernel", CUPTI_ACTIVITY_KIND_KERNEL},
    {"driver", CUPTI_ACTIVITY_KIND_DRIVER},
    {"runtime", CUPTI_ACTIVITY_KIND_RUNTIME},
    {"device", CUPTI_ACTIVITY_KIND_DEVICE},
    {"context", CUPTI_ACTIVITY_KIND_CONTEXT},
    {"kernel", CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL},
    {"name", CUPTI_ACTIVITY_KIND_NAME},
    {"marker", CUPTI_ACTIVITY_KIND_MARKER},
    {"overhead", CUPTI_ACTIVITY_KIND_OVERHEAD},
    {"environment", CUPTI_ACTIVITY_KIND_ENVIRONMENT},
    {"memcpy2", CUPTI_ACTIVITY_KIND_MEMCPY2},
    {"function", CUPTI_ACTIVITY_KIND_FUNCTION},
    {"module", CUPTI_ACTIVITY_KIND_MODULE},
    {"cuda_event", CUPTI_ACTIVITY_KIND_CUDA_EVENT},
    {"stream", CUPTI_ACTIVITY_KIND_STREAM},
    {"sync", CUPTI_ACTIVITY_KIND_SYNCHRONIZATION},
    {"memory2", CUPTI_ACTIVITY_KIND_MEMORY2},
    {"memory_pool", CUPTI_ACTIVITY_KIND_MEMORY_POOL},
    {"graph_trace", CUPTI_ACTIVITY_KIND_GRAPH_TRACE},
};
constexpr const char* kDefaultKinds =
    "device,context,stream,kernel,memcpy,memcpy2,memset,sync,overhead";

std::string EnvString(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

uint64_t EnvNumber(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : std::strtoull(value, nullptr, 0);
}

std::vector<std::string> SplitCommas(const std::string& list) {
  std::vector<std::string> items;
  size_t begin = 0;
  while (begin <= list.size()) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) items.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

int FindMappedCupti(dl_phdr_info* info, size_t /*size*/, void* path) {
  if (std::strstr(info->dlpi_name, "/libcupti.so") == nullptr) return 0;
  *static_cast<std::string*>(path) = info->dlpi_name;
  return 1;
}

void* OpenCupti(std::string* path) {
  std::vector<std::string> candidates;
  const std::string chosen = EnvString("XPU_CUPTI_LIB", "");
  if (!chosen.empty()) candidates.push_back(chosen);
  std::string mapped;
  dl_iterate_phdr(&FindMappedCupti, &mapped);
  if (!mapped.empty()) candidates.push_back(mapped);
  for (const char* name :
       {"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/lib64/libcupti.so.13",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12"}) {
    candidates.emplace_back(name);
  }
  for (const std::string& candidate : candidates) {
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      *path = candidate;
      return handle;
    }
  }
  return nullptr;
}

void ResolveFunctions(void* handle, Cupti* cupti) {
#define XPU_RESOLVE(name) \
  cupti->name = reinterpret_cast<decltype(cupti->name)>(dlsym(handle, #name));
  XPU_CUPTI_FUNCTIONS(XPU_RESOLVE)
#undef XPU_RESOLVE
}

std::optional<CUpti_ActivityKind> KindByName(const std::string& name) {
  for (const KindName& known : kKindNames) {
    if (name == known.name) return known.kind;
  }
  char* end = nullptr;
  const unsigned long number = std::strtoul(name.c_str(), &end, 10);
  if (name.empty() || *end != '\0') return std::nullopt;
  return static_cast<CUpti_ActivityKind>(number);
}

std::vector<CUpti_ActivityKind> ChosenKinds(const std::string& list) {
  std::vector<CUpti_ActivityKind> kinds;
  for (const std::string& item : SplitCommas(list)) {
    if (item == "default") {
      for (const CUpti_ActivityKind kind : ChosenKinds(kDefaultKinds)) kinds.push_back(kind);
    } else if (item.front() == '-') {
      if (const auto kind = KindByName(item.substr(1))) std::erase(kinds, *kind);
    } else if (const auto kind = KindByName(item)) {
      kinds.push_back(*kind);
    } else {
      WriteInfo("unknown_kind", item);
    }
  }
  return kinds;
}

void SetAttribute(const char* variable, CUpti_ActivityAttribute attribute) {
  const std::string value = EnvString(variable, "");
  if (value.empty()) return;
  uint8_t setting = value == "0" ? 0 : 1;
  size_t size = sizeof(setting);
  Setup("cuptiActivitySetAttribute", attribute, g_state->cupti.cuptiActivitySetAttribute, attribute,
        &size, static_cast<void*>(&setting));
}

void SetUpActivities() {
  const Cupti& cupti = g_state->cupti;
  SetAttribute("CUPTI_RAW_PER_THREAD", CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
  SetAttribute("CUPTI_RAW_ZEROED", CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
  if (EnvString("CUPTI_RAW_THREAD_ID", "system") == "system") {
    Setup("cuptiSetThreadIdType", CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM, cupti.cuptiSetThreadIdType,
          CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  }
  Setup("cuptiActivityRegisterCallbacks", 0, cupti.cuptiActivityRegisterCallbacks,
        &OnBufferRequested, &OnBufferCompleted);
  if (EnvNumber("CUPTI_RAW_LATENCY", 0) != 0) {
    Setup("cuptiActivityEnableLatencyTimestamps", 1, cupti.cuptiActivityEnableLatencyTimestamps,
          uint8_t{1});
  }
  g_state->kinds = ChosenKinds(EnvString("CUPTI_RAW_KINDS", "default"));
  for (const CUpti_ActivityKind kind : g_state->kinds) {
    Setup("cuptiActivityEnable", kind, cupti.cuptiActivityEnable, kind);
  }
  if (EnvNumber("CUPTI_RAW_ALL_SYNC", 0) != 0) {
    Setup("cuptiActivityEnableAllSyncRecords", 1, cupti.cuptiActivityEnableAllSyncRecords,
          uint8_t{1});
  }
  for (const std::string& cbid : SplitCommas(EnvString("CUPTI_RAW_RUNTIME_CBIDS", ""))) {
    const auto id = static_cast<CUpti_CallbackId>(std::strtoul(cbid.c_str(), nullptr, 10));
    Setup("cuptiActivityEnableRuntimeApi", id, cupti.cuptiActivityEnableRuntimeApi, id, uint8_t{1});
  }
  for (const std::string& cbid : SplitCommas(EnvString("CUPTI_RAW_DRIVER_CBIDS", ""))) {
    const auto id = static_cast<CUpti_CallbackId>(std::strtoul(cbid.c_str(), nullptr, 10));
    Setup("cuptiActivityEnableDriverApi", id, cupti.cuptiActivityEnableDriverApi, id, uint8_t{1});
  }
}

void SetUpCallbacks() {
  constexpr std::pair<const char*, CUpti_CallbackDomain> kDomains[] = {
      {"driver", CUPTI_CB_DOMAIN_DRIVER_API}, {"runtime", CUPTI_CB_DOMAIN_RUNTIME_API},
      {"resource", CUPTI_CB_DOMAIN_RESOURCE}, {"synchronize", CUPTI_CB_DOMAIN_SYNCHRONIZE},
      {"state", CUPTI_CB_DOMAIN_STATE},
  };
  for (const std::string& name :
       SplitCommas(EnvString("CUPTI_RAW_CALLBACKS", "driver,runtime,resource"))) {
    for (const auto& [known, domain] : kDomains) {
      if (name != known) continue;
      Setup("cuptiEnableDomain", domain, g_state->cupti.cuptiEnableDomain, 1U, g_state->subscriber,
            domain);
    }
  }
}

void CUPTIAPI OnSecondSubscriber(void* /*user_data*/, CUpti_CallbackDomain /*domain*/,
                                 CUpti_CallbackId /*cbid*/, const void* /*data*/) {}

CUptiResult Subscribe() {
  const Cupti& cupti = g_state->cupti;
  if (EnvString("CUPTI_RAW_SUBSCRIBE", "v1") != "v2") {
    return Setup("cuptiSubscribe", 0, cupti.cuptiSubscribe, &g_state->subscriber, &OnCallback,
                 static_cast<void*>(nullptr));
  }
  CUpti_SubscriberParams params{};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "xpu raw";
  return Setup("cuptiSubscribe_v2", 0, cupti.cuptiSubscribe_v2, &g_state->subscriber, &OnCallback,
               static_cast<void*>(nullptr), &params);
}

// What a tool that comes second gets to see.
void TrySecondSubscriber() {
  const Cupti& cupti = g_state->cupti;
  CUpti_SubscriberHandle second = nullptr;
  if (Setup("second cuptiSubscribe", 0, cupti.cuptiSubscribe, &second, &OnSecondSubscriber,
            static_cast<void*>(nullptr)) == CUPTI_SUCCESS) {
    Setup("second cuptiUnsubscribe", 0, cupti.cuptiUnsubscribe, second);
  }
  char old_name[128] = {};
  CUpti_SubscriberParams params{};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "xpu second";
  params.oldSubscriberName = old_name;
  params.oldSubscriberSize = sizeof(old_name);
  second = nullptr;
  if (Setup("second cuptiSubscribe_v2", 0, cupti.cuptiSubscribe_v2, &second, &OnSecondSubscriber,
            static_cast<void*>(nullptr), &params) == CUPTI_SUCCESS) {
    Setup("second cuptiUnsubscribe", 0, cupti.cuptiUnsubscribe, second);
  }
  WriteInfo("subscriber_name_seen_by_second", old_name);
}

void WriteEnvironment() {
  for (const char* name :
       {"CUPTI_RAW_KINDS", "CUPTI_RAW_CALLBACKS", "CUPTI_RAW_RUNTIME_CBIDS",
        "CUPTI_RAW_DRIVER_CBIDS", "CUPTI_RAW_THREAD_ID", "CUPTI_RAW_BUFFER_BYTES",
        "CUPTI_RAW_FLUSH_MS", "CUPTI_RAW_FORCE_AT_MS", "CUPTI_RAW_ALL_SYNC", "CUPTI_RAW_LATENCY",
        "CUPTI_RAW_PER_THREAD", "CUPTI_RAW_ZEROED", "CUPTI_RAW_SUBSCRIBE", "CUPTI_RAW_MAX_BYTES"}) {
    if (const char* value = std::getenv(name)) WriteInfo(name, value);
  }
  WriteInfo("header_cupti_version", std::to_string(CUPTI_API_VERSION));
}

void Initialize() {
  std::string path = EnvString("CUPTI_RAW_OUT", "");
  if (path.empty() || g_state != nullptr) return;
  if (const size_t at = path.find("%p"); at != std::string::npos) {
    path.replace(at, 2, std::to_string(getpid()));
  }
  g_state = new State;
  if (!g_state->writer.Open(path, EnvNumber("CUPTI_RAW_MAX_BYTES", uint64_t{4} << 20))) {
    g_state->silent = true;
    return;
  }
  t_own_call = true;
  WriteThreadOnce();
  WriteEnvironment();
  g_state->buffer_bytes = std::max<size_t>(EnvNumber("CUPTI_RAW_BUFFER_BYTES", 256 << 10), 4096);
  g_state->flush_ms = EnvNumber("CUPTI_RAW_FLUSH_MS", 100);
  g_state->force_at_ms = EnvNumber("CUPTI_RAW_FORCE_AT_MS", 0);
  std::string cupti_path;
  void* handle = OpenCupti(&cupti_path);
  WriteInfo("cupti_path", cupti_path);
  if (handle != nullptr) {
    ResolveFunctions(handle, &g_state->cupti);
    uint32_t version = 0;
    Setup("cuptiGetVersion", 0, g_state->cupti.cuptiGetVersion, &version);
    WriteInfo("cupti_version", std::to_string(version));
    const CUptiResult result = Subscribe();
    if (result == CUPTI_SUCCESS) {
      TrySecondSubscriber();
      SetUpCallbacks();
      SetUpActivities();
      g_state->flusher = std::thread(&RunFlusher);
      pthread_atfork(nullptr, nullptr, [] { g_state->silent = true; });
      std::atexit(&Finish);
    }
  }
  g_state->writer.Flush();
  t_own_call = false;
}

}  // namespace
}  // namespace xpu::cupti_raw

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  xpu::cupti_raw::Initialize();
  return 1;
}
