// A libcupti small enough to test the life of the injected library. What the real one does in all
// its detail is the simulated device's task (tests/fake_cuda). XPU_STUB_CUPTI=busy: another tool
// holds CUPTI; =no_kernels, =no_graphs: a kind fails; =dropping: CUPTI lost records.
// XPU_STUB_CUPTI_VERSION: what cuptiGetVersion says.
#include "stub_cupti.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "cupti_inject/cupti_abi.h"

namespace cupti = xpu::cupti;

namespace {

struct State {
  std::mutex mutex;
  cupti::Callback callback = nullptr;
  void* user_data = nullptr;
  std::set<std::pair<uint32_t, uint32_t>> enabled;
  std::set<uint32_t> kinds;
  cupti::BufferRequested requested = nullptr;
  cupti::BufferCompleted completed = nullptr;
  uint8_t* buffer = nullptr;
  size_t buffer_bytes = 0;
  size_t used_bytes = 0;
  int flushes[2] = {};
  std::map<uint64_t, uint64_t> moved;
};

State& S() {
  static auto* state = new State;
  return *state;
}

// The library ends its work on its own thread while the program's make calls. Not held over a call
// of the callback, which may ask for more.
bool IsEnabled(uint32_t domain, uint32_t callback_id) {
  const std::lock_guard lock(S().mutex);
  return S().enabled.contains({domain, callback_id});
}

bool ModeIs(const char* mode) {
  const char* value = std::getenv("XPU_STUB_CUPTI");
  return value != nullptr && std::strcmp(value, mode) == 0;
}

void Call(uint32_t domain, uint32_t callback_id, uint32_t site, uint32_t correlation_id,
          int32_t return_value, const void* parameters) {
  if (!IsEnabled(domain, callback_id)) return;
  cupti::CallbackData data{};
  data.site = site;
  data.correlation_id = correlation_id;
  data.return_value = &return_value;
  data.parameters = parameters;
  S().callback(S().user_data, domain, callback_id, &data);
}

void PlainCall(uint32_t domain, uint32_t callback_id, uint32_t site, uint32_t correlation_id,
               int32_t return_value) {
  Call(domain, callback_id, site, correlation_id, return_value, nullptr);
}

void CreateContext() {
  if (!IsEnabled(cupti::kDomainResource, cupti::kResourceContextCreated)) return;
  S().callback(S().user_data, cupti::kDomainResource, cupti::kResourceContextCreated, nullptr);
}

void Complete() {
  uint8_t* buffer = std::exchange(S().buffer, nullptr);
  S().completed(nullptr, 0, buffer, S().buffer_bytes, S().used_bytes);
}

void AddKernel(uint32_t correlation_id, const char* name, uint64_t start_ns, uint64_t end_ns) {
  const std::lock_guard lock(S().mutex);
  if (!S().kinds.contains(cupti::kKindConcurrentKernel)) return;
  if (S().buffer != nullptr && S().used_bytes + sizeof(cupti::Kernel) > S().buffer_bytes) {
    Complete();
  }
  if (S().buffer == nullptr) {
    size_t max_records = 0;
    S().requested(&S().buffer, &S().buffer_bytes, &max_records);
    S().used_bytes = 0;
  }
  cupti::Kernel kernel{};
  kernel.kind = cupti::kKindConcurrentKernel;
  kernel.correlation_id = correlation_id;
  kernel.name = reinterpret_cast<uint64_t>(name);
  kernel.start_ns = start_ns;
  kernel.end_ns = end_ns;
  std::memcpy(S().buffer + S().used_bytes, &kernel, sizeof(kernel));
  S().used_bytes += sizeof(kernel);
}

void Announce(uint32_t callback_id, const cupti::GraphData& graph) {
  if (!IsEnabled(cupti::kDomainResource, callback_id)) return;
  cupti::ResourceData data{};
  data.descriptor = &graph;
  S().callback(S().user_data, cupti::kDomainResource, callback_id, &data);
}

void GraphNode(uint32_t callback_id, uint64_t node, uint64_t original, uint32_t node_type) {
  cupti::GraphData graph{};
  graph.graph = reinterpret_cast<void*>(node >> 32);
  if (callback_id != cupti::kResourceNodeCreateStarting) {
    graph.node = reinterpret_cast<void*>(node);
    graph.original_node = reinterpret_cast<void*>(original);
  }
  graph.node_type = node_type;
  Announce(callback_id, graph);
}

void MoveNode(uint64_t node, uint64_t new_id) { S().moved[node] = new_id; }

void GraphExecCreated(uint64_t graph_exec) {
  cupti::GraphData graph{};
  graph.graph_exec = reinterpret_cast<void*>(graph_exec);
  Announce(cupti::kResourceExecCreated, graph);
}

void UpdateGraph(uint64_t graph_exec, uint64_t graph, uint32_t correlation_id,
                 int32_t return_value) {
  const cupti::GraphExecUpdateParameters parameters{reinterpret_cast<void*>(graph_exec),
                                                    reinterpret_cast<void*>(graph)};
  Call(cupti::kDomainDriver, kStubGraphUpdate, cupti::kSiteEnter, correlation_id, 0, &parameters);
  Call(cupti::kDomainDriver, kStubGraphUpdate, cupti::kSiteExit, correlation_id, return_value,
       &parameters);
}

int Flushes(int forced) {
  const std::lock_guard lock(S().mutex);
  return S().flushes[forced];
}

}  // namespace

extern "C" {

const StubCupti* StubControl() {
  static const StubCupti control{&PlainCall, &CreateContext, &AddKernel,        &Flushes,
                                 &GraphNode, &MoveNode,      &GraphExecCreated, &UpdateGraph};
  return &control;
}

cupti::Result cuptiGetVersion(uint32_t* version) {
  const char* chosen = std::getenv("XPU_STUB_CUPTI_VERSION");
  *version = chosen == nullptr ? 130001 : static_cast<uint32_t>(std::atoi(chosen));
  return cupti::kSuccess;
}

cupti::Result cuptiGetResultString(cupti::Result /*result*/, const char** text) {
  *text = "CUPTI_ERROR_STUB";
  return cupti::kSuccess;
}

cupti::Result cuptiGetGraphNodeId(void* node, uint64_t* id) {
  *id = reinterpret_cast<uint64_t>(node);
  if (const auto moved = S().moved.find(*id); moved != S().moved.end()) *id = moved->second;
  return cupti::kSuccess;
}

cupti::Result cuptiGetGraphExecId(void* graph_exec, uint32_t* id) {
  *id = static_cast<uint32_t>(reinterpret_cast<uint64_t>(graph_exec));
  return cupti::kSuccess;
}

cupti::Result cuptiGetGraphId(void* graph, uint32_t* id) {
  *id = static_cast<uint32_t>(reinterpret_cast<uint64_t>(graph));
  return cupti::kSuccess;
}

cupti::Result cuptiGetTimestamp(uint64_t* timestamp) {
  static uint64_t now = 1'000'000;
  *timestamp = ++now;
  return cupti::kSuccess;
}

cupti::Result cuptiSubscribe(cupti::Subscriber* subscriber, cupti::Callback callback,
                             void* user_data) {
  S().callback = callback;
  S().user_data = user_data;
  *subscriber = &S();
  return cupti::kSuccess;
}

cupti::Result cuptiSubscribe_v2(cupti::Subscriber* subscriber, cupti::Callback callback,
                                void* user_data, cupti::SubscriberParameters* parameters) {
  if (ModeIs("busy")) {
    std::strncpy(parameters->previous_name, "other tool", parameters->previous_name_size);
    return cupti::kErrorMultipleSubscribers;
  }
  return cuptiSubscribe(subscriber, callback, user_data);
}

cupti::Result cuptiUnsubscribe(cupti::Subscriber /*subscriber*/) {
  const std::lock_guard lock(S().mutex);
  S().enabled.clear();
  return cupti::kSuccess;
}

cupti::Result cuptiEnableCallback(uint32_t enable, cupti::Subscriber /*subscriber*/,
                                  uint32_t domain, uint32_t callback_id) {
  const std::lock_guard lock(S().mutex);
  if (enable != 0) S().enabled.insert({domain, callback_id});
  return cupti::kSuccess;
}

cupti::Result cuptiGetCallbackName(uint32_t domain, uint32_t callback_id, const char** name) {
  const bool runtime = domain == cupti::kDomainRuntime;
  if (runtime && callback_id == kStubLaunchKernel) {
    *name = "cudaLaunchKernel_v7000";
  } else if (runtime && callback_id == kStubMalloc) {
    *name = "cudaMalloc_v3020";
  } else if (runtime && callback_id == kStubStreamSynchronize) {
    *name = "cudaStreamSynchronize_v3020";
  } else if (domain == cupti::kDomainDriver && callback_id == kStubCuLaunchKernel) {
    *name = "cuLaunchKernel";
  } else if (domain == cupti::kDomainDriver && callback_id == kStubGraphUpdate) {
    *name = "cuGraphExecUpdate_v2";
  } else if (runtime && callback_id == kStubInstantiate) {
    *name = "cudaGraphInstantiate_v10000";
  } else if (domain == cupti::kDomainDriver && callback_id < kStubCuLaunchKernel) {
    *name = "cuInit";
  } else {
    return cupti::kErrorInvalidParameter;
  }
  return cupti::kSuccess;
}

cupti::Result cuptiSetThreadIdType(uint32_t /*type*/) { return cupti::kSuccess; }

cupti::Result cuptiActivitySetAttribute(uint32_t /*attribute*/, size_t* /*size*/, void* /*value*/) {
  return cupti::kSuccess;
}

cupti::Result cuptiActivityRegisterCallbacks(cupti::BufferRequested requested,
                                             cupti::BufferCompleted completed) {
  S().requested = requested;
  S().completed = completed;
  return cupti::kSuccess;
}

cupti::Result cuptiActivityEnable(uint32_t kind) {
  if (ModeIs("no_kernels") && kind == cupti::kKindConcurrentKernel) {
    return cupti::kErrorInsufficientPrivileges;
  }
  if (ModeIs("no_graphs") && kind == cupti::kKindGraphTrace) {
    return cupti::kErrorInsufficientPrivileges;
  }
  const std::lock_guard lock(S().mutex);
  S().kinds.insert(kind);
  return cupti::kSuccess;
}

cupti::Result cuptiActivityDisable(uint32_t kind) {
  const std::lock_guard lock(S().mutex);
  S().kinds.erase(kind);
  return cupti::kSuccess;
}

cupti::Result cuptiActivityFlushAll(uint32_t flag) {
  const std::lock_guard lock(S().mutex);
  ++S().flushes[flag];
  if (S().buffer != nullptr) Complete();
  return cupti::kSuccess;
}

cupti::Result cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_size, void** record) {
  auto* next = *record == nullptr ? buffer : static_cast<uint8_t*>(*record) + sizeof(cupti::Kernel);
  if (next >= buffer + valid_size) return cupti::kErrorMaxLimitReached;
  *record = next;
  return cupti::kSuccess;
}

cupti::Result cuptiActivityGetNumDroppedRecords(void* /*context*/, uint32_t /*stream_id*/,
                                                size_t* dropped) {
  *dropped = ModeIs("dropping") ? 3 : 0;
  return cupti::kSuccess;
}

}  // extern "C"
