// libcupti_floor.so: what CUPTI itself costs, for overhead.py to compare recorders with. Loaded by
// the CUDA driver (CUDA_INJECTION64_PATH) it switches records on, counts them and throws them away:
// what every recorder on CUPTI pays before it does anything of its own.
//
//   CUPTI_FLOOR_KINDS  comma list of kernel, graph (a replay is one record), copy, memset, sync,
//                      overhead
//   CUPTI_FLOOR_CALLS  comma list of driver, runtime: call back at the launches of these APIs, as a
//                      recorder needs for their stacks
//   CUPTI_FLOOR_SAMPLES  sample program counters every 2^N cycles, and fetch them every second; not
//                      with CUPTI_FLOOR_INIT=late
//   CUPTI_FLOOR_FLUSH  fetch what is finished so often, in milliseconds
//   CUPTI_FLOOR_INIT   early: before the program's first context; late: once there is one, from a
//                      thread that looks for it
//   CUPTI_FLOOR_LIB    the libcupti to open where the program has not loaded one
//   CUPTI_FLOOR_OUT    a file for one line at the end of the program: the records that came
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include "cupti_inject/cupti_pc_sampling.h"

namespace {

namespace sampling = xpu::cupti;

struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityFlushAll) flush_all;
  decltype(&cuptiActivityGetNextRecord) next_record;
  decltype(&cuptiSubscribe) subscribe;
  decltype(&cuptiEnableCallback) enable_callback;
  decltype(&cuptiGetCallbackName) callback_name;
  sampling::Result (*enable_sampling)(sampling::SamplingParameters*);
  sampling::Result (*configure_sampling)(sampling::SamplingSettings*);
  sampling::Result (*get_samples)(sampling::SamplingFetch*);
};

Cupti g_cupti;
std::atomic<bool> g_on{false};
std::atomic<uint64_t> g_records{0};

// CUPTI asks for a buffer per thread and gives it back from a thread of its own. A list of free
// buffers: a new one costs page faults, which are none of CUPTI's cost.
constexpr size_t kBufferBytes = size_t{4} << 20;
constexpr size_t kFreeBuffers = 64;
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
uint8_t* g_free[kFreeBuffers];
size_t g_free_count = 0;

void CUPTIAPI OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = nullptr;
  pthread_mutex_lock(&g_lock);
  if (g_free_count > 0) *buffer = g_free[--g_free_count];
  pthread_mutex_unlock(&g_lock);
  if (*buffer == nullptr) *buffer = static_cast<uint8_t*>(std::aligned_alloc(4096, kBufferBytes));
  *size = kBufferBytes;
  *max_records = 0;
}

void CUPTIAPI OnBufferCompleted(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer,
                                size_t /*size*/, size_t valid_size) {
  uint64_t records = 0;
  CUpti_Activity* record = nullptr;
  while (g_cupti.next_record(buffer, valid_size, &record) == CUPTI_SUCCESS) ++records;
  g_records += records;
  pthread_mutex_lock(&g_lock);
  const bool kept = g_free_count < kFreeBuffers;
  if (kept) g_free[g_free_count++] = buffer;
  pthread_mutex_unlock(&g_lock);
  if (!kept) std::free(buffer);
}

std::string Setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

uint32_t SamplePeriodBits() {
  return static_cast<uint32_t>(std::atoi(Setting("CUPTI_FLOOR_SAMPLES", "0").c_str()));
}

int FindCupti(dl_phdr_info* info, size_t /*size*/, void* result) {
  const char* slash = std::strrchr(info->dlpi_name, '/');
  if (slash == nullptr || std::strncmp(slash, "/libcupti.so", 12) != 0) return 0;
  *static_cast<std::string*>(result) = info->dlpi_name;
  return 1;
}

// The copy that the program has loaded first: PyTorch brings its own, and two conflict.
bool LoadCupti() {
  std::string path;
  dl_iterate_phdr(&FindCupti, &path);
  void* handle = nullptr;
  for (const std::string& name :
       {path, Setting("CUPTI_FLOOR_LIB", ""), std::string("libcupti.so.13"),
        std::string("libcupti.so.12"), std::string("libcupti.so")}) {
    if (handle == nullptr && !name.empty()) handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr) return false;
  const auto resolve = [handle](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(dlsym(handle, name));
    return *function != nullptr;
  };
  return resolve("cuptiActivityRegisterCallbacks", &g_cupti.register_callbacks) &&
         resolve("cuptiActivityEnable", &g_cupti.enable) &&
         resolve("cuptiActivityFlushAll", &g_cupti.flush_all) &&
         resolve("cuptiActivityGetNextRecord", &g_cupti.next_record) &&
         resolve("cuptiSubscribe", &g_cupti.subscribe) &&
         resolve("cuptiEnableCallback", &g_cupti.enable_callback) &&
         resolve("cuptiGetCallbackName", &g_cupti.callback_name) &&
         (SamplePeriodBits() == 0 ||
          (resolve("cuptiPCSamplingEnable", &g_cupti.enable_sampling) &&
           resolve("cuptiPCSamplingSetConfigurationAttribute", &g_cupti.configure_sampling) &&
           resolve("cuptiPCSamplingGetData", &g_cupti.get_samples)));
}

bool Lists(const char* setting, const char* name, const char* otherwise) {
  return ("," + Setting(setting, otherwise) + ",").find(name) != std::string::npos;
}

// Where CUPTI puts samples, with room for those of so many instructions.
struct SampleBuffer {
  static constexpr size_t kInstructions = 4096;
  static constexpr size_t kReasons = 64;
  SampleBuffer() : instructions(kInstructions), reasons(kInstructions * kReasons) {
    for (size_t i = 0; i < kInstructions; ++i) {
      instructions[i].size = sizeof(sampling::PcSamples);
      instructions[i].reasons = &reasons[i * kReasons];
    }
    data.size = sizeof(data);
    data.capacity = kInstructions;
    data.instructions = instructions.data();
  }
  std::vector<sampling::PcSamples> instructions;
  std::vector<sampling::StallCount> reasons;
  sampling::SamplingData data{};
};

std::atomic<void*> g_sampled{nullptr};

void* FetchSamples(void* /*unused*/) {
  static SampleBuffer buffer;
  while (g_on) {
    sleep(1);
    sampling::SamplingFetch fetch{sizeof(fetch), nullptr, g_sampled.load(), &buffer.data};
    do {
      buffer.data.count = buffer.data.left = 0;
    } while (g_cupti.get_samples(&fetch) == CUPTI_SUCCESS && buffer.data.left > 0);
  }
  return nullptr;
}

// The first context; as xpu-record does it, with its buffer on the GPU.
void SampleContext(void* context) {
  void* none = nullptr;
  if (!g_sampled.compare_exchange_strong(none, context)) return;
  static SampleBuffer rest;
  sampling::SamplingParameters enable{sizeof(enable), nullptr, context};
  sampling::SamplingSetting settings[5]{};
  settings[0].attribute = sampling::kSamplingMode;
  settings[0].number = sampling::kSamplingModeContinuous;
  settings[1].attribute = sampling::kSamplingPeriod;
  settings[1].number = SamplePeriodBits();
  settings[2].attribute = sampling::kSamplingBufferBytes;
  settings[2].bytes = size_t{64} << 20;
  settings[3].attribute = sampling::kSamplingScratchBytes;
  settings[3].bytes = size_t{4} << 20;
  settings[4].attribute = sampling::kSamplingDataBuffer;
  settings[4].buffer = &rest.data;
  sampling::SamplingSettings all{sizeof(all), nullptr, context, 5, settings};
  pthread_t thread;
  g_on = g_cupti.enable_sampling(&enable) == CUPTI_SUCCESS &&
         g_cupti.configure_sampling(&all) == CUPTI_SUCCESS &&
         pthread_create(&thread, nullptr, &FetchSamples, nullptr) == 0;
  if (g_on) pthread_detach(thread);
}

void CUPTIAPI OnCall(void* /*user*/, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                     const void* data) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
    SampleContext(static_cast<const CUpti_ResourceData*>(data)->context);
  }
}

bool EnableCalls(CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain) {
  constexpr CUpti_CallbackId kMostIds = 1024;
  bool good = true;
  for (CUpti_CallbackId id = 1; id < kMostIds; ++id) {
    const char* name = nullptr;
    if (g_cupti.callback_name(domain, id, &name) != CUPTI_SUCCESS || name == nullptr) continue;
    if (std::strstr(name, "Launch") == nullptr) continue;
    good &= g_cupti.enable_callback(1, subscriber, domain, id) == CUPTI_SUCCESS;
  }
  return good;
}

bool EnableCalls() {
  const bool driver = Lists("CUPTI_FLOOR_CALLS", ",driver,", "");
  const bool runtime = Lists("CUPTI_FLOOR_CALLS", ",runtime,", "");
  const bool samples = SamplePeriodBits() != 0;
  if (!driver && !runtime && !samples) return true;
  CUpti_SubscriberHandle subscriber = nullptr;
  return g_cupti.subscribe(&subscriber, &OnCall, nullptr) == CUPTI_SUCCESS &&
         (!samples ||
          g_cupti.enable_callback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                  CUPTI_CBID_RESOURCE_CONTEXT_CREATED) == CUPTI_SUCCESS) &&
         (!driver || EnableCalls(subscriber, CUPTI_CB_DOMAIN_DRIVER_API)) &&
         (!runtime || EnableCalls(subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
}

void* FlushOften(void* period_us) {
  while (g_on) {
    usleep(static_cast<useconds_t>(reinterpret_cast<uintptr_t>(period_us)));
    g_cupti.flush_all(0);
  }
  return nullptr;
}

void StartFlushing() {
  const uintptr_t period_us =
      std::strtoul(Setting("CUPTI_FLOOR_FLUSH", "0").c_str(), nullptr, 10) * 1000;
  pthread_t thread;
  if (period_us == 0 || !g_on) return;
  if (pthread_create(&thread, nullptr, &FlushOften, reinterpret_cast<void*>(period_us)) == 0) {
    pthread_detach(thread);
  }
}

void Start() {
  if (!LoadCupti()) return;
  bool good = g_cupti.register_callbacks(&OnBufferRequested, &OnBufferCompleted) == CUPTI_SUCCESS;
  good &= EnableCalls();
  const auto enable = [&](const char* name, CUpti_ActivityKind kind) {
    if (!Lists("CUPTI_FLOOR_KINDS", name, "kernel")) return;
    good &= g_cupti.enable(kind) == CUPTI_SUCCESS;
  };
  enable(",graph,", CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  enable(",kernel,", CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  enable(",copy,", CUPTI_ACTIVITY_KIND_MEMCPY);
  enable(",memset,", CUPTI_ACTIVITY_KIND_MEMSET);
  enable(",sync,", CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  enable(",overhead,", CUPTI_ACTIVITY_KIND_OVERHEAD);
  g_on = good;
  StartFlushing();
}

// True once any device has a primary context, which is the one that cudart uses.
bool HasContext() {
  static void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  static const auto count_of =
      reinterpret_cast<decltype(&cuDeviceGetCount)>(dlsym(driver, "cuDeviceGetCount"));
  static const auto state_of = reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(
      dlsym(driver, "cuDevicePrimaryCtxGetState"));
  int count = 0;
  if (count_of == nullptr || state_of == nullptr || count_of(&count) != CUDA_SUCCESS) return false;
  for (CUdevice device = 0; device < count; ++device) {
    unsigned flags = 0;
    int active = 0;
    if (state_of(device, &flags, &active) == CUDA_SUCCESS && active != 0) return true;
  }
  return false;
}

void Finish() {
  if (g_on) g_cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const std::string path = Setting("CUPTI_FLOOR_OUT", "");
  if (path.empty()) return;
  if (std::FILE* file = std::fopen(path.c_str(), "w")) {
    std::fprintf(file, "%s %llu\n", g_on ? "on" : "off",
                 static_cast<unsigned long long>(g_records.load()));
    std::fclose(file);
  }
}

void StartAndFinish() {
  Start();
  // Registered after CUPTI's own handlers, so that it runs before them.
  std::atexit(&Finish);
}

void* WaitForContext(void* /*unused*/) {
  constexpr useconds_t kPollUs = 500;
  while (!HasContext()) usleep(kPollUs);
  StartAndFinish();
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (Setting("CUPTI_FLOOR_INIT", "early") == "early") {
    StartAndFinish();
    return 1;
  }
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &WaitForContext, nullptr) == 0) pthread_detach(thread);
  return 1;
}
