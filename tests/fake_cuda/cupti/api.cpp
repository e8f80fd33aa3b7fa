// The exported functions.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "buffers.h"
#include "cupti_inject/cupti_versions.h"
#include "pc_sampling.h"
#include "settings.h"
#include "since.h"
#include "subscriber.h"

namespace xpu::fake_cupti {
namespace {

std::atomic<CUpti_ActivityThreadIdType> g_thread_id_type{CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT};

[[noreturn]] void Abort(const char* why) {
  std::fprintf(stderr, "simulated libcupti: %s\n", why);
  std::abort();
}

// It registers handlers when it is loaded, and when it is used first.
std::atomic<bool> g_has_exited{false};
void OnExit() { g_has_exited = true; }
[[gnu::constructor]] void OnLoad() { std::atexit(&OnExit); }

// The real one crashes, if not each time.
void MustBeThere() {
  if (g_has_exited) Abort("it was called after its exit handlers had begun");
  if (xpu_fake_driver()->shut_down()) Abort("it was called after the driver's exit handlers began");
}

void TakeTimeToSetUp() {
  MustBeThere();
  // The first call waits for what the device works on, and does not sleep meanwhile (an H200).
  if (!TheState().is_set_up.exchange(true)) {
    const uint64_t until_ns = xpu_fake_driver()->busy_until_ns();
    while (xpu_fake_driver()->now_ns() < until_ns) {
    }
  }
  usleep(static_cast<useconds_t>(TheSettings().set_up_ms * 1000));
  MustBeThere();
}

CUptiResult Subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                      void* user_data) {
  if (subscriber == nullptr || callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  TakeTimeToSetUp();
  static const int is_registered = std::atexit(&OnExit);
  static_cast<void>(is_registered);
  if (TheSettings().subscribed) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  // Never freed: a callback may be on its way when its subscriber leaves.
  auto* made = new CUpti_Subscriber_st{callback, user_data};
  CUpti_Subscriber_st* none = nullptr;
  if (!TheState().subscriber.compare_exchange_strong(none, made)) {
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;  // 39 in every capture
  }
  *subscriber = made;
  Observe();
  return CUPTI_SUCCESS;
}

// When their kind is switched on. Once a device has a context there is no record of it (an H200,
// after an attach).
void ReportDevices() {
  fake_cuda::Activity activity{static_cast<fake_cuda::ActivityKind>(CUPTI_ACTIVITY_KIND_DEVICE)};
  const fake_cuda::Driver& driver = *xpu_fake_driver();
  for (uint32_t device = 0; device < driver.device_count(); ++device) {
    activity.device_id = device;
    const CUcontext context = driver.primary_context(static_cast<int>(device));
    if (driver.initialized() && driver.context_uid(context) == 0) {
      Buffers::Get().Add(MakeRecord(activity, ThreadId()));
    }
  }
}

CUptiResult ChooseCall(uint32_t domain, uint32_t callback_id, uint8_t enable) {
  if (callback_id >= kMaxCallbackId) return CUPTI_ERROR_INVALID_PARAMETER;
  TheState().chosen_calls[domain][callback_id] = enable != 0;
  Observe();
  return CUPTI_SUCCESS;
}

// Of the kinds that xpu does not describe, the newest came with 12.8.
CUpti_ActivityKind LastKind() {
  return TheSettings().cuda < 12080 ? CUPTI_ACTIVITY_KIND_JIT : CUPTI_ACTIVITY_KIND_COUNT;
}

uint32_t ApiVersionOf(uint32_t cuda) {
  if (cuda >= CUDA_VERSION) return cuda / 1000 * 10000 + cuda % 1000 / 10 * 100;
  uint32_t api = 0;
  for (const xpu::cupti::ApiVersion& version : xpu::cupti::kApiVersions) {
    if (version.cuda <= cuda) api = version.api;
  }
  return api;
}

const char* ResultName(CUptiResult result) {
  switch (result) {
    case CUPTI_SUCCESS:
      return "CUPTI_SUCCESS";
    case CUPTI_ERROR_INVALID_PARAMETER:
      return "CUPTI_ERROR_INVALID_PARAMETER";
    case CUPTI_ERROR_INVALID_OPERATION:
      return "CUPTI_ERROR_INVALID_OPERATION";
    case CUPTI_ERROR_MAX_LIMIT_REACHED:
      return "CUPTI_ERROR_MAX_LIMIT_REACHED";
    case CUPTI_ERROR_NOT_READY:
      return "CUPTI_ERROR_NOT_READY";
    case CUPTI_ERROR_NOT_INITIALIZED:
      return "CUPTI_ERROR_NOT_INITIALIZED";
    case CUPTI_ERROR_INVALID_KIND:
      return "CUPTI_ERROR_INVALID_KIND";
    case CUPTI_ERROR_NOT_SUPPORTED:
      return "CUPTI_ERROR_NOT_SUPPORTED";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
    default:
      return nullptr;
  }
}

}  // namespace

uint32_t ThreadId() {
  if (g_thread_id_type.load() == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) {
    return static_cast<uint32_t>(syscall(SYS_gettid));
  }
  return static_cast<uint32_t>(pthread_self());
}

void SetThreadIdType(CUpti_ActivityThreadIdType type) { g_thread_id_type = type; }
CUpti_ActivityThreadIdType ThreadIdType() { return g_thread_id_type; }

}  // namespace xpu::fake_cupti

using namespace xpu::fake_cupti;

extern "C" {

CUptiResult cuptiGetVersion(uint32_t* version) {
  const uint32_t cuda = TheSettings().cuda;
  *version = cuda == CUDA_VERSION ? CUPTI_API_VERSION : ApiVersionOf(cuda);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** str) {
  *str = ResultName(result);
  return *str == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  const int32_t early = TheSettings().timestamp_before_context;
  if (early != 0 && !xpu_fake_driver()->context_exists()) return static_cast<CUptiResult>(early);
  *timestamp = CuptiTime(xpu_fake_driver()->now_ns());
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                           void* userdata) {
  return Subscribe(subscriber, callback, userdata);
}

static CUptiResult SubscribeV2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                               void* userdata, CUpti_SubscriberParams* pParams) {
  const CUptiResult result = Subscribe(subscriber, callback, userdata);
  const bool refused = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  if (refused && pParams != nullptr && pParams->oldSubscriberName != nullptr &&
      pParams->oldSubscriberSize > TheSettings().holder.size()) {
    std::strcpy(pParams->oldSubscriberName, TheSettings().holder.c_str());
  }
  return result;
}

XPU_SINCE(13000, cuptiSubscribe_v2, SubscribeV2)

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  MustBeThere();
  State& state = TheState();
  if (subscriber == nullptr || state.subscriber.load() != subscriber) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  state.subscriber = nullptr;
  for (auto& domain : state.callbacks) {
    for (auto& enabled : domain) enabled = false;
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  MustBeThere();
  State& state = TheState();
  if (state.subscriber.load() != subscriber || domain <= 0 || domain >= CUPTI_CB_DOMAIN_SIZE ||
      cbid > LastCallbackId(domain)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  state.callbacks[domain][cbid] = enable != 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                              CUpti_CallbackDomain domain) {
  State& state = TheState();
  if (state.subscriber.load() != subscriber || domain <= 0 || domain >= CUPTI_CB_DOMAIN_SIZE) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  for (auto& enabled : state.callbacks[domain]) enabled = enable != 0;
  return CUPTI_SUCCESS;
}

// The resource domain has no names: "" in every capture.
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
  const char* known = CallbackName(domain, cbid);
  if (known == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = known;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetContextId(CUcontext context, uint32_t* contextId) {
  *contextId = xpu_fake_driver()->context_uid(context);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t perThreadStream,
                               uint32_t* streamId) {
  if (stream == nullptr && perThreadStream != 0) stream = CU_STREAM_PER_THREAD;
  const auto id = xpu_fake_driver()->stream_id(context, stream);
  if (!id) return CUPTI_ERROR_INVALID_STREAM;
  *streamId = *id;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t* pId) {
  *pId = xpu_fake_driver()->graph_id(graph);
  return CUPTI_SUCCESS;
}

static CUptiResult GetGraphExecId(CUgraphExec graphExec, uint32_t* pId) {
  *pId = xpu_fake_driver()->graph_exec_id(graphExec);
  return CUPTI_SUCCESS;
}
XPU_SINCE(xpu::cupti::kFirstWithExecutableIds, cuptiGetGraphExecId, GetGraphExecId)

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* nodeId) {
  *nodeId = xpu_fake_driver()->graph_node_id(node);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  SetThreadIdType(type);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
  *type = ThreadIdType();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                                           CUpti_BuffersCallbackCompleteFunc funcBufferCompleted) {
  if (funcBufferRequested == nullptr || funcBufferCompleted == nullptr) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  TakeTimeToSetUp();
  Buffers::Get().SetCallbacks(funcBufferRequested, funcBufferCompleted);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (kind <= 0 || kind >= CUPTI_ACTIVITY_KIND_COUNT) return CUPTI_ERROR_INVALID_KIND;
  if (kind > LastKind()) return CUPTI_ERROR_INVALID_KIND;
  // The real one crashes later, when an older graph is replayed.
  if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE && !TheState().kinds[kind] &&
      xpu_fake_driver()->has_executable_graphs()) {
    Abort("GRAPH_TRACE was enabled after a graph was instantiated");
  }
  const bool before = TheState().kinds[kind].exchange(true);
  Observe();
  if (!before && kind == CUPTI_ACTIVITY_KIND_DEVICE) ReportDevices();
  if (!before && kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ReportUnfinished();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  if (kind <= 0 || kind >= CUPTI_ACTIVITY_KIND_COUNT) return CUPTI_ERROR_INVALID_KIND;
  MustBeThere();
  if (SamplesHaveFailed()) std::abort();
  TheState().kinds[kind] = false;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable) {
  return ChooseCall(xpu::fake_cuda::kRuntimeDomain, cbid, enable);
}

CUptiResult cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable) {
  return ChooseCall(xpu::fake_cuda::kDriverDomain, cbid, enable);
}

CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t /*enable*/) { return CUPTI_SUCCESS; }

CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t /*enable*/) { return CUPTI_SUCCESS; }

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t* valueSize,
                                      void* value) {
  if (valueSize == nullptr || value == nullptr || *valueSize == 0) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  if (attr == CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT) {
    TheState().device_buffers = *static_cast<const size_t*>(value);
  }
  if (attr == CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED) {
    if (TheSettings().confidential) return CUPTI_ERROR_NOT_SUPPORTED;
    TheState().has_pinned_buffers = *static_cast<const uint8_t*>(value) != 0;
  }
  if (attr == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER) {
    if (TheSettings().cuda < 13000) return CUPTI_ERROR_INVALID_PARAMETER;
    Buffers::Get().set_per_thread(*static_cast<const uint8_t*>(value) != 0);
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute /*attr*/, size_t* /*valueSize*/,
                                      void* /*value*/) {
  return CUPTI_ERROR_NOT_SUPPORTED;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  return Buffers::Get().Flush((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
}

// Full buffers come by themselves here, so there is nothing to do.
CUptiResult cuptiActivityFlushPeriod(uint32_t /*time*/) { return CUPTI_SUCCESS; }

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes,
                                       CUpti_Activity** record) {
  if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  uint8_t* at = buffer;
  if (*record != nullptr) {
    at = reinterpret_cast<uint8_t*>(*record);
    const uint32_t size = RecordSize((*record)->kind);
    if (size == 0) return CUPTI_ERROR_INVALID_KIND;
    at += size;
  }
  if (at >= buffer + validBufferSizeBytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(at);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext /*context*/, uint32_t /*streamId*/,
                                              size_t* dropped) {
  *dropped = Buffers::Get().TakeDropped();
  return CUPTI_SUCCESS;
}

// Allowed at the end of a call, or anywhere once everything was flushed.
CUptiResult cuptiFinalize() {
  if (Buffers::Get().IsWorker()) Abort("cuptiFinalize was called in a callback of buffers");
  const CallbackSite site = CurrentCallback();
  if (site != CallbackSite::kNone && site != CallbackSite::kExit) {
    Abort("cuptiFinalize was called in a callback that is not that of an outermost call's end");
  }
  if (site == CallbackSite::kNone && Buffers::Get().HasAny()) {
    Abort("cuptiFinalize was called before all was flushed");
  }
  if (TheSettings().cuda < xpu::cupti::kFirstToFinalizeWithGraphs &&
      xpu_fake_driver()->has_executable_graphs()) {
    Abort("cuptiFinalize was called in a program with graphs");
  }
  // On an H200 the program crashes, if not each time.
  State& state = TheState();
  if (state.replayed_unrecorded) {
    Abort(
        "cuptiFinalize was called after a graph was replayed whose nodes had been recorded before");
  }
  Forget();
  if (state.replays != 0) Abort("cuptiFinalize was called while another thread replayed a graph");
  state.recorded_nodes = false;
  Buffers::Get().Stop();
  SetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
  return CUPTI_SUCCESS;
}

}  // extern "C"
