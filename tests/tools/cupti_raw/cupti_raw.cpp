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
#include "cupti_raw.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include <cupti.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace xpu::cupti_raw {
namespace {

static_assert(offsetof(CUpti_ActivityKernel10, start) == record_offset::kKernelStart);
static_assert(offsetof(CUpti_ActivityKernel10, end) == record_offset::kKernelEnd);
static_assert(offsetof(CUpti_ActivityKernel10, deviceId) == record_offset::kKernelDeviceId);
static_assert(offsetof(CUpti_ActivityKernel10, contextId) == record_offset::kKernelContextId);
static_assert(offsetof(CUpti_ActivityKernel10, streamId) == record_offset::kKernelStreamId);
static_assert(offsetof(CUpti_ActivityKernel10, correlationId) ==
              record_offset::kKernelCorrelationId);
static_assert(offsetof(CUpti_ActivityKernel10, name) == record_offset::kKernelName);
static_assert(offsetof(CUpti_ActivityKernel10, graphNodeId) == record_offset::kKernelGraphNodeId);
static_assert(offsetof(CUpti_ActivityKernel10, graphId) == record_offset::kKernelGraphId);
static_assert(offsetof(CUpti_ActivityAPI, cbid) == record_offset::kApiCbid);
static_assert(offsetof(CUpti_ActivityAPI, start) == record_offset::kApiStart);
static_assert(offsetof(CUpti_ActivityAPI, end) == record_offset::kApiEnd);
static_assert(offsetof(CUpti_ActivityAPI, threadId) == record_offset::kApiThreadId);
static_assert(offsetof(CUpti_ActivityAPI, correlationId) == record_offset::kApiCorrelationId);
static_assert(offsetof(CUpti_ActivityMemcpy6, copyKind) == record_offset::kMemcpyCopyKind);
static_assert(offsetof(CUpti_ActivityMemcpy6, bytes) == record_offset::kMemcpyBytes);
static_assert(offsetof(CUpti_ActivityMemcpy6, start) == record_offset::kMemcpyStart);
static_assert(offsetof(CUpti_ActivityMemcpy6, end) == record_offset::kMemcpyEnd);
static_assert(offsetof(CUpti_ActivityMemcpy6, streamId) == record_offset::kMemcpyStreamId);
static_assert(offsetof(CUpti_ActivityMemcpy6, correlationId) ==
              record_offset::kMemcpyCorrelationId);
static_assert(offsetof(CUpti_ActivityMemset4, bytes) == record_offset::kMemsetBytes);
static_assert(offsetof(CUpti_ActivityMemset4, start) == record_offset::kMemsetStart);
static_assert(offsetof(CUpti_ActivityMemset4, end) == record_offset::kMemsetEnd);
static_assert(offsetof(CUpti_ActivityMemset4, streamId) == record_offset::kMemsetStreamId);
static_assert(offsetof(CUpti_ActivityMemset4, correlationId) ==
              record_offset::kMemsetCorrelationId);
static_assert(offsetof(CUpti_ActivitySynchronization2, type) == record_offset::kSyncType);
static_assert(offsetof(CUpti_ActivitySynchronization2, start) == record_offset::kSyncStart);
static_assert(offsetof(CUpti_ActivitySynchronization2, end) == record_offset::kSyncEnd);
static_assert(offsetof(CUpti_ActivitySynchronization2, correlationId) ==
              record_offset::kSyncCorrelationId);
static_assert(offsetof(CUpti_ActivityOverhead3, overheadKind) == record_offset::kOverheadKind);
static_assert(offsetof(CUpti_ActivityOverhead3, start) == record_offset::kOverheadStart);
static_assert(offsetof(CUpti_ActivityOverhead3, end) == record_offset::kOverheadEnd);
static_assert(offsetof(CUpti_ActivityGraphTrace2, correlationId) ==
              record_offset::kGraphCorrelationId);
static_assert(offsetof(CUpti_ActivityGraphTrace2, start) == record_offset::kGraphStart);
static_assert(offsetof(CUpti_ActivityGraphTrace2, end) == record_offset::kGraphEnd);
static_assert(offsetof(CUpti_ActivityGraphTrace2, graphId) == record_offset::kGraphGraphId);

// The functions used, with the types of cupti.h; found with dlsym so that the program's own copy of
// libcupti is the one that answers.
#define XPU_CUPTI_FUNCTIONS(X)            \
  X(cuptiSubscribe)                       \
  X(cuptiSubscribe_v2)                    \
  X(cuptiUnsubscribe)                     \
  X(cuptiEnableDomain)                    \
  X(cuptiGetCallbackName)                 \
  X(cuptiActivityEnable)                  \
  X(cuptiActivityDisable)                 \
  X(cuptiActivityEnableRuntimeApi)        \
  X(cuptiActivityEnableDriverApi)         \
  X(cuptiActivityEnableAllSyncRecords)    \
  X(cuptiActivityEnableLatencyTimestamps) \
  X(cuptiActivitySetAttribute)            \
  X(cuptiActivityRegisterCallbacks)       \
  X(cuptiActivityFlushAll)                \
  X(cuptiActivityGetNextRecord)           \
  X(cuptiActivityGetNumDroppedRecords)    \
  X(cuptiSetThreadIdType)                 \
  X(cuptiGetTimestamp)                    \
  X(cuptiGetVersion)                      \
  X(cuptiGetGraphNodeId)                  \
  X(cuptiGetGraphId)                      \
  X(cuptiGetGraphExecId)

struct Cupti {
#define XPU_MEMBER(name) decltype(&::name) name = nullptr;
  XPU_CUPTI_FUNCTIONS(XPU_MEMBER)
#undef XPU_MEMBER
};

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

uint64_t Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint32_t ThreadId() {
  static thread_local const auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
  return tid;
}

template <typename T>
uint64_t Number(const T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

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

// A payload under construction.
class Payload {
 public:
  template <typename T>
  void Add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    AddBytes(&value, sizeof(value));
  }
  void AddString(std::string_view text) {
    AddBytes(text.data(), text.size());
    bytes_.push_back(0);
  }
  void AddBytes(const void* data, size_t size) {
    const auto* begin = static_cast<const uint8_t*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
  }
  void Pad() { bytes_.resize((bytes_.size() + 7) & ~size_t{7}); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

// The output file. Thread-safe; written through at every flush so that a kill loses little.
class Writer {
 public:
  bool Open(const std::string& path, uint64_t max_bytes) {
    max_bytes_ = max_bytes;
    fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0) return false;
    FileHeader header{};
    std::memcpy(header.magic, kMagic, sizeof(kMagic));
    header.version = kVersion;
    header.pid = static_cast<uint32_t>(getpid());
    header.monotonic_ns = Now(CLOCK_MONOTONIC);
    header.realtime_ns = Now(CLOCK_REALTIME);
    Append(&header, sizeof(header));
    return true;
  }

  // `share_percent` of the size limit is open to this entry: callbacks must leave room for buffers.
  bool Write(EntryType type, Payload payload, uint64_t monotonic_ns, unsigned share_percent) {
    payload.Pad();
    EntryHeader header{};
    header.type = static_cast<uint16_t>(type);
    header.size = static_cast<uint32_t>(payload.bytes().size());
    header.monotonic_ns = monotonic_ns;
    header.tid = ThreadId();
    const std::lock_guard lock(mutex_);
    if (total_bytes_ + sizeof(header) + header.size > max_bytes_ / 100 * share_percent) {
      return false;
    }
    Append(&header, sizeof(header));
    Append(payload.bytes().data(), payload.bytes().size());
    if (pending_.size() > kWriteThrough) WriteThrough();
    return true;
  }

  void Flush() {
    const std::lock_guard lock(mutex_);
    WriteThrough();
  }

 private:
  static constexpr size_t kWriteThrough = 64 * 1024;

  void Append(const void* data, size_t size) {
    const auto* begin = static_cast<const uint8_t*>(data);
    pending_.insert(pending_.end(), begin, begin + size);
    total_bytes_ += size;
  }

  void WriteThrough() {
    size_t done = 0;
    while (done < pending_.size()) {
      const ssize_t written = write(fd_, pending_.data() + done, pending_.size() - done);
      if (written < 0 && errno != EINTR) break;
      if (written > 0) done += static_cast<size_t>(written);
    }
    pending_.clear();
  }

  std::mutex mutex_;
  std::vector<uint8_t> pending_;
  uint64_t total_bytes_ = 0;
  uint64_t max_bytes_ = 0;
  int fd_ = -1;
};

// Everything of this process; made once in InitializeInjection, never destroyed, because CUPTI may
// still call back while the program's destructors run.
struct State {
  Cupti cupti;
  Writer writer;
  CUpti_SubscriberHandle subscriber = nullptr;
  std::vector<CUpti_ActivityKind> kinds;
  size_t buffer_bytes = 0;
  uint64_t flush_ms = 0;
  uint64_t force_at_ms = 0;

  std::mutex names_mutex;
  std::set<std::pair<uint32_t, uint32_t>> named_callbacks;
  std::map<uint64_t, std::string> symbols;

  std::mutex thread_mutex;
  std::condition_variable wake;
  bool context_exists = false;  // guarded by thread_mutex
  bool stopping = false;        // guarded by thread_mutex
  std::thread flusher;

  std::atomic<bool> silent{false};  // a forked child, or after the end
  std::atomic<bool> context_seen{false};
  std::atomic<uint64_t> callbacks{0};
  std::atomic<uint64_t> callbacks_left_out{0};
  std::atomic<uint64_t> buffers_requested{0};
  std::atomic<uint64_t> buffers_completed{0};
  std::atomic<uint64_t> buffers_left_out{0};
};
State* g_state = nullptr;

// Calls that this library makes itself are not the program's.
thread_local bool t_own_call = false;

void WriteInfo(const char* key, std::string_view value) {
  Payload payload;
  payload.AddString(key);
  payload.AddString(value);
  g_state->writer.Write(EntryType::kInfo, std::move(payload), Now(CLOCK_MONOTONIC), 100);
}

void WriteThreadOnce() {
  static thread_local bool written = false;
  if (written) return;
  written = true;
  char comm[16] = {};
  pthread_getname_np(pthread_self(), comm, sizeof(comm));
  Payload payload;
  payload.Add(ThreadPayload{static_cast<uint64_t>(pthread_self())});
  payload.AddString(comm);
  g_state->writer.Write(EntryType::kThread, std::move(payload), Now(CLOCK_MONOTONIC), 100);
}

// Runs one call of the set-up and writes its result.
template <typename Function, typename... Args>
CUptiResult Setup(const char* name, uint32_t argument, Function function, Args... args) {
  const uint64_t begin = Now(CLOCK_MONOTONIC);
  int32_t result = kNotFound;
  if (function != nullptr) result = function(args...);
  Payload payload;
  payload.Add(SetupPayload{result, argument, Now(CLOCK_MONOTONIC) - begin});
  payload.AddString(name);
  g_state->writer.Write(EntryType::kSetup, std::move(payload), begin, 100);
  return static_cast<CUptiResult>(result);
}

// symbolName is documented for launches only; elsewhere it may be anything.
bool HasSymbolName(CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    switch (cbid) {
      case CUPTI_DRIVER_TRACE_CBID_cuLaunch:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
      case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
        return true;
      default:
        return false;
    }
  }
  switch (cbid) {
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060:
    case CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000:
    case CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000:
      return true;
    default:
      return false;
  }
}

void WriteCallbackNameOnce(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const char* name) {
  const std::pair<uint32_t, uint32_t> key(domain, cbid);
  const std::lock_guard lock(g_state->names_mutex);
  if (!g_state->named_callbacks.insert(key).second) return;
  Payload payload;
  payload.Add(CallbackNamePayload{key.first, key.second});
  payload.AddString(name == nullptr ? "" : name);
  g_state->writer.Write(EntryType::kCallbackName, std::move(payload), Now(CLOCK_MONOTONIC), 100);
}

void WriteSymbolNameOnce(const char* symbol) {
  const std::lock_guard lock(g_state->names_mutex);
  std::string& known = g_state->symbols[Number(symbol)];
  if (known == symbol) return;
  known = symbol;
  Payload payload;
  payload.Add(SymbolNamePayload{Number(symbol)});
  payload.AddString(known);
  g_state->writer.Write(EntryType::kSymbolName, std::move(payload), Now(CLOCK_MONOTONIC), 100);
}

void WriteCallback(EntryType type, Payload payload, uint64_t monotonic_ns) {
  ++g_state->callbacks;
  if (!g_state->writer.Write(type, std::move(payload), monotonic_ns, 60)) {
    ++g_state->callbacks_left_out;
  }
}

void NoteContext() {
  if (g_state->context_seen.exchange(true)) return;
  const std::lock_guard lock(g_state->thread_mutex);
  g_state->context_exists = true;
  g_state->wake.notify_all();
}

void OnApi(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const CUpti_CallbackData* data,
           uint64_t monotonic_ns) {
  WriteCallbackNameOnce(domain, cbid, data->functionName);
  ApiCallbackPayload api{};
  api.domain = static_cast<uint16_t>(domain);
  api.site = static_cast<uint16_t>(data->callbackSite);
  api.cbid = cbid;
  api.correlation_id = data->correlationId;
  api.context_uid = data->contextUid;
  api.context_pointer = Number(data->context);
  if (HasSymbolName(domain, cbid) && data->symbolName != nullptr) {
    api.symbol_pointer = Number(data->symbolName);
    WriteSymbolNameOnce(data->symbolName);
  }
  if (data->callbackSite == CUPTI_API_EXIT && data->functionReturnValue != nullptr) {
    std::memcpy(&api.return_value, data->functionReturnValue, sizeof(api.return_value));
  }
  Payload payload;
  payload.Add(api);
  WriteCallback(EntryType::kApiCallback, std::move(payload), monotonic_ns);
}

void AddGraph(const CUpti_GraphData& graph, ResourceCallbackPayload* out) {
  const Cupti& cupti = g_state->cupti;
  out->node_type = static_cast<uint32_t>(graph.nodeType);
  out->graph_pointer = Number(graph.graph);
  out->original_graph_pointer = Number(graph.originalGraph);
  out->node_pointer = Number(graph.node);
  out->original_node_pointer = Number(graph.originalNode);
  out->dependency_pointer = Number(graph.dependency);
  out->graph_exec_pointer = Number(graph.graphExec);
  if (graph.node != nullptr && cupti.cuptiGetGraphNodeId != nullptr) {
    cupti.cuptiGetGraphNodeId(graph.node, &out->node_id);
  }
  if (graph.originalNode != nullptr && cupti.cuptiGetGraphNodeId != nullptr) {
    cupti.cuptiGetGraphNodeId(graph.originalNode, &out->original_node_id);
  }
  if (graph.graph != nullptr && cupti.cuptiGetGraphId != nullptr) {
    cupti.cuptiGetGraphId(graph.graph, &out->graph_id);
  }
  if (graph.originalGraph != nullptr && cupti.cuptiGetGraphId != nullptr) {
    cupti.cuptiGetGraphId(graph.originalGraph, &out->original_graph_id);
  }
  if (graph.graphExec != nullptr && cupti.cuptiGetGraphExecId != nullptr) {
    cupti.cuptiGetGraphExecId(graph.graphExec, &out->graph_exec_id);
  }
}

// Which fields of CUpti_GraphData are set depends on the cbid and the rest is not cleared, so only
// the documented ones may be followed.
CUpti_GraphData ValidGraphFields(CUpti_CallbackId cbid, const CUpti_GraphData& data) {
  CUpti_GraphData valid{};
  valid.graph = data.graph;
  switch (cbid) {
    case CUPTI_CBID_RESOURCE_GRAPH_CLONED:
      valid.originalGraph = data.originalGraph;
      break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING:
      valid.nodeType = data.nodeType;
      break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
    case CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING:
      valid.node = data.node;
      valid.nodeType = data.nodeType;
      break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
      valid.originalGraph = data.originalGraph;
      valid.node = data.node;
      valid.originalNode = data.originalNode;
      valid.nodeType = data.nodeType;
      break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED:
    case CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_DESTROY_STARTING:
      valid.node = data.node;
      valid.dependency = data.dependency;
      break;
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED:
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING:
      valid.graphExec = data.graphExec;
      break;
    default:
      break;
  }
  return valid;
}

void OnResource(CUpti_CallbackId cbid, const CUpti_ResourceData* data, uint64_t monotonic_ns) {
  const char* name = nullptr;
  if (g_state->cupti.cuptiGetCallbackName != nullptr) {
    g_state->cupti.cuptiGetCallbackName(CUPTI_CB_DOMAIN_RESOURCE, cbid, &name);
  }
  WriteCallbackNameOnce(CUPTI_CB_DOMAIN_RESOURCE, cbid, name);
  ResourceCallbackPayload out{};
  out.cbid = cbid;
  if (data != nullptr) {
    out.context_pointer = Number(data->context);
    const bool has_stream = cbid == CUPTI_CBID_RESOURCE_STREAM_CREATED ||
                            cbid == CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING;
    if (has_stream) out.stream_pointer = Number(data->resourceHandle.stream);
    const bool is_module = cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED ||
                           cbid == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING ||
                           cbid == CUPTI_CBID_RESOURCE_MODULE_PROFILED;
    if (is_module && data->resourceDescriptor != nullptr) {
      const auto* module = static_cast<const CUpti_ModuleResourceData*>(data->resourceDescriptor);
      out.module_id = module->moduleId;
      out.cubin_size = module->cubinSize;
    }
    const bool is_graph =
        cbid >= CUPTI_CBID_RESOURCE_GRAPH_CREATED && cbid <= CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED;
    if (is_graph && data->resourceDescriptor != nullptr) {
      const auto* graph = static_cast<const CUpti_GraphData*>(data->resourceDescriptor);
      AddGraph(ValidGraphFields(cbid, *graph), &out);
    }
  }
  Payload payload;
  payload.Add(out);
  WriteCallback(EntryType::kResourceCallback, std::move(payload), monotonic_ns);
  if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) NoteContext();
}

void CUPTIAPI OnCallback(void* /*user_data*/, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                         const void* data) {
  if (t_own_call || g_state->silent.load()) return;
  const uint64_t monotonic_ns = Now(CLOCK_MONOTONIC);
  WriteThreadOnce();
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      OnApi(domain, cbid, static_cast<const CUpti_CallbackData*>(data), monotonic_ns);
      break;
    case CUPTI_CB_DOMAIN_RESOURCE:
      OnResource(cbid, static_cast<const CUpti_ResourceData*>(data), monotonic_ns);
      break;
    default:
      ++g_state->callbacks_left_out;
      break;
  }
}

void CUPTIAPI OnSecondSubscriber(void* /*user_data*/, CUpti_CallbackDomain /*domain*/,
                                 CUpti_CallbackId /*cbid*/, const void* /*data*/) {}

void CUPTIAPI OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  const uint64_t monotonic_ns = Now(CLOCK_MONOTONIC);
  *max_records = 0;
  *size = g_state->buffer_bytes;
  *buffer = static_cast<uint8_t*>(std::calloc(1, g_state->buffer_bytes));
  if (g_state->silent.load()) return;
  ++g_state->buffers_requested;
  WriteThreadOnce();
  Payload payload;
  payload.Add(BufferRequestedPayload{Number(*buffer), *size});
  g_state->writer.Write(EntryType::kBufferRequested, std::move(payload), monotonic_ns, 100);
}

// The pointers of one record that must be followed now.
void CollectPointers(const CUpti_Activity* record, std::map<uint64_t, std::string>* strings,
                     std::map<uint64_t, std::string>* overhead_data) {
  const auto add_string = [&](const char* text) {
    if (text != nullptr) (*strings)[Number(text)] = text;
  };
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      add_string(reinterpret_cast<const CUpti_ActivityKernel10*>(record)->name);
      break;
    case CUPTI_ACTIVITY_KIND_DEVICE:
      add_string(reinterpret_cast<const CUpti_ActivityDevice5*>(record)->name);
      break;
    case CUPTI_ACTIVITY_KIND_NAME:
      add_string(reinterpret_cast<const CUpti_ActivityName*>(record)->name);
      break;
    case CUPTI_ACTIVITY_KIND_MARKER:
      add_string(reinterpret_cast<const CUpti_ActivityMarker2*>(record)->name);
      add_string(reinterpret_cast<const CUpti_ActivityMarker2*>(record)->domain);
      break;
    case CUPTI_ACTIVITY_KIND_FUNCTION:
      add_string(reinterpret_cast<const CUpti_ActivityFunction*>(record)->name);
      break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
      const auto* overhead = reinterpret_cast<const CUpti_ActivityOverhead3*>(record);
      const bool has_data = overhead->overheadKind == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL;
      if (has_data && overhead->overheadData != nullptr) {
        (*overhead_data)[Number(static_cast<const char*>(overhead->overheadData))] =
            std::string(static_cast<const char*>(overhead->overheadData),
                        sizeof(CUpti_ActivityOverheadCommandBufferFullData));
      }
      break;
    }
    default:
      break;
  }
}

void AddSideTable(SideKind kind, const std::map<uint64_t, std::string>& table, Payload* payload) {
  for (const auto& [pointer, content] : table) {
    payload->Add(
        SideHeader{pointer, static_cast<uint32_t>(kind), static_cast<uint32_t>(content.size())});
    payload->AddBytes(content.data(), content.size());
    payload->Pad();
  }
}

void WriteCompleted(CUcontext context, uint32_t stream_id, uint8_t* buffer, size_t size,
                    size_t valid_size, uint64_t monotonic_ns) {
  const Cupti& cupti = g_state->cupti;
  std::vector<uint32_t> offsets;
  std::map<uint64_t, std::string> strings;
  std::map<uint64_t, std::string> overhead_data;
  CUpti_Activity* record = nullptr;
  CUptiResult result = CUPTI_ERROR_MAX_LIMIT_REACHED;
  if (valid_size > 0) {
    while ((result = cupti.cuptiActivityGetNextRecord(buffer, valid_size, &record)) ==
           CUPTI_SUCCESS) {
      offsets.push_back(static_cast<uint32_t>(reinterpret_cast<const uint8_t*>(record) - buffer));
      CollectPointers(record, &strings, &overhead_data);
    }
  }
  BufferCompletedPayload info{};
  size_t dropped = 0;
  info.dropped_result = cupti.cuptiActivityGetNumDroppedRecords(context, stream_id, &dropped);
  info.buffer_pointer = Number(buffer);
  info.size = size;
  info.valid_size = valid_size;
  info.context_pointer = Number(context);
  info.dropped = dropped;
  info.stream_id = stream_id;
  info.last_result = result;
  info.record_count = static_cast<uint32_t>(offsets.size());
  info.side_count = static_cast<uint32_t>(strings.size() + overhead_data.size());
  Payload payload;
  payload.Add(info);
  payload.AddBytes(offsets.data(), offsets.size() * sizeof(uint32_t));
  payload.Pad();
  AddSideTable(SideKind::kString, strings, &payload);
  AddSideTable(SideKind::kOverheadData, overhead_data, &payload);
  payload.AddBytes(buffer, valid_size);
  if (!g_state->writer.Write(EntryType::kBufferCompleted, std::move(payload), monotonic_ns, 95)) {
    ++g_state->buffers_left_out;
  }
}

void CUPTIAPI OnBufferCompleted(CUcontext context, uint32_t stream_id, uint8_t* buffer, size_t size,
                                size_t valid_size) {
  const uint64_t monotonic_ns = Now(CLOCK_MONOTONIC);
  if (!g_state->silent.load()) {
    ++g_state->buffers_completed;
    WriteThreadOnce();
    WriteCompleted(context, stream_id, buffer, size, valid_size, monotonic_ns);
  }
  std::free(buffer);
}

void WriteClockPair() {
  if (g_state->cupti.cuptiGetTimestamp == nullptr) return;
  ClockPairPayload pair{};
  pair.monotonic_before_ns = Now(CLOCK_MONOTONIC);
  pair.result = g_state->cupti.cuptiGetTimestamp(&pair.cupti_timestamp);
  pair.monotonic_after_ns = Now(CLOCK_MONOTONIC);
  pair.realtime_ns = Now(CLOCK_REALTIME);
  Payload payload;
  payload.Add(pair);
  g_state->writer.Write(EntryType::kClockPair, std::move(payload), pair.monotonic_before_ns, 100);
}

void FlushActivities(uint32_t flag) {
  const uint64_t begin = Now(CLOCK_MONOTONIC);
  const CUptiResult result = g_state->cupti.cuptiActivityFlushAll(flag);
  Payload payload;
  payload.Add(FlushPayload{Now(CLOCK_MONOTONIC), flag, result});
  g_state->writer.Write(EntryType::kFlush, std::move(payload), begin, 100);
}

void WriteDriverVersion() {
  // The driver that loaded us is mapped; asking before it is initialised could take its init lock.
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return;
  using GetVersion = int (*)(int*);
  const auto get_version = reinterpret_cast<GetVersion>(dlsym(driver, "cuDriverGetVersion"));
  int version = 0;
  const int result = get_version == nullptr ? kNotFound : get_version(&version);
  WriteInfo("driver_version", result == 0 ? std::to_string(version) : "error");
}

void RunFlusher() {
  t_own_call = true;
  pthread_setname_np(pthread_self(), "cupti_raw");
  WriteThreadOnce();
  std::unique_lock lock(g_state->thread_mutex);
  g_state->wake.wait(lock, [] { return g_state->context_exists || g_state->stopping; });
  if (g_state->stopping) return;
  lock.unlock();
  WriteDriverVersion();
  WriteClockPair();
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto next_pair = start + std::chrono::seconds(1);
  bool forced = g_state->force_at_ms == 0;
  const auto period = std::chrono::milliseconds(g_state->flush_ms == 0 ? 100 : g_state->flush_ms);
  auto next_tick = start + period;
  lock.lock();
  while (!g_state->wake.wait_until(lock, next_tick, [] { return g_state->stopping; })) {
    lock.unlock();
    if (g_state->flush_ms != 0) FlushActivities(0);
    if (!forced && Clock::now() - start >= std::chrono::milliseconds(g_state->force_at_ms)) {
      forced = true;
      FlushActivities(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    }
    if (Clock::now() >= next_pair) {
      WriteClockPair();
      next_pair += std::chrono::seconds(1);
    }
    g_state->writer.Flush();
    next_tick += period;
    lock.lock();
  }
}

void Finish() {
  if (g_state->silent.load()) return;
  t_own_call = true;
  {
    const std::lock_guard lock(g_state->thread_mutex);
    g_state->stopping = true;
    g_state->wake.notify_all();
  }
  if (g_state->flusher.joinable()) g_state->flusher.join();
  if (g_state->context_seen.load()) WriteClockPair();
  FlushActivities(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  for (const CUpti_ActivityKind kind : g_state->kinds) {
    Setup("cuptiActivityDisable", kind, g_state->cupti.cuptiActivityDisable, kind);
  }
  Setup("cuptiUnsubscribe", 0, g_state->cupti.cuptiUnsubscribe, g_state->subscriber);
  Payload payload;
  payload.Add(SummaryPayload{g_state->callbacks, g_state->callbacks_left_out,
                             g_state->buffers_requested, g_state->buffers_completed,
                             g_state->buffers_left_out});
  g_state->writer.Write(EntryType::kSummary, std::move(payload), Now(CLOCK_MONOTONIC), 100);
  g_state->silent = true;
  g_state->writer.Flush();
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
