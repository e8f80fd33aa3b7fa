#include "subscriber.h"

#include <thread>
#include <utility>

#include "buffers.h"
#include "pc_sampling.h"
#include "settings.h"

namespace xpu::fake_cupti {
namespace {

using fake_cuda::Activity;
using fake_cuda::ActivityKind;
using fake_cuda::ApiCall;
using fake_cuda::Resource;

// Functions without a struct of parameters here give a zeroed one: never a null pointer.
const std::array<uint64_t, 32> kNoParams{};

// What a thread adds to the buffers it adds before CUPTI is finalised, or not at all.
std::atomic<uint32_t> g_adding{0};

struct Adding {
  Adding() { g_adding.fetch_add(1); }
  ~Adding() { g_adding.fetch_sub(1); }
};

thread_local CallbackSite t_site = CallbackSite::kNone;

void CallBack(CallbackSite site, CUpti_CallbackDomain domain, uint32_t callback_id,
              const void* data) {
  State& state = TheState();
  CUpti_Subscriber_st* subscriber = state.subscriber.load();
  if (subscriber == nullptr || callback_id >= kMaxCallbackId) return;
  if (!state.callbacks[domain][callback_id].load(std::memory_order_relaxed)) return;
  const CallbackSite outer = std::exchange(t_site, site);
  subscriber->callback(subscriber->user_data, domain, callback_id, data);
  t_site = outer;
}

bool IsGraphLaunch(uint32_t callback_id) {
  return callback_id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch ||
         callback_id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;
}

// Only the outermost call becomes a record: a runtime call hides the driver calls in it
// (transformer_api_records: kinds runtime and driver on, no cuLaunchKernel).
bool WantsRecord(const ApiCall& call) {
  if (call.nested) return false;
  const bool driver = call.domain == fake_cuda::kDriverDomain;
  if (KindEnabled(driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME)) return true;
  return call.callback_id < kMaxCallbackId &&
         TheState().chosen_calls[call.domain][call.callback_id].load();
}

void NoteReplay(bool exit) {
  thread_local bool is_in_one = false;
  State& state = TheState();
  if (exit == is_in_one) {
    is_in_one = !exit;
    state.replays.fetch_add(exit ? UINT32_MAX : 1);
  }
}

// Once its callback has switched kinds on or off.
void NoteWhetherNodesAreRecorded() {
  State& state = TheState();
  const bool records_nodes = KindEnabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ||
                             KindEnabled(CUPTI_ACTIVITY_KIND_MEMCPY) ||
                             KindEnabled(CUPTI_ACTIVITY_KIND_MEMSET);
  if (state.recorded_nodes && !records_nodes) state.replayed_unrecorded = true;
}

void OnApi(ApiCall* call, bool exit) {
  const bool is_replay =
      call->domain == fake_cuda::kDriverDomain && IsGraphLaunch(call->callback_id);
  if (is_replay) NoteReplay(exit);
  const fake_cuda::Driver& driver = *xpu_fake_driver();
  CUpti_CallbackData data{};
  data.callbackSite = exit ? CUPTI_API_EXIT : CUPTI_API_ENTER;
  data.functionName = call->name;
  data.functionParams = call->params == nullptr ? kNoParams.data() : call->params;
  data.functionReturnValue = exit ? &call->result : nullptr;
  data.symbolName = call->symbol;
  data.context = driver.current_context();
  data.contextUid = driver.context_uid(data.context);
  data.correlationData = &call->correlation_data;
  data.correlationId = call->correlation_id;
  const bool is_inner = call->nested && call->outer->correlation_id == call->correlation_id;
  const CallbackSite at_end = is_inner ? CallbackSite::kInnerExit : CallbackSite::kExit;
  if (const auto id = CallbackIdThen(call->domain, call->callback_id)) {
    CallBack(exit ? at_end : CallbackSite::kEnter, static_cast<CUpti_CallbackDomain>(call->domain),
             *id, &data);
  }
  if (is_replay && !exit) NoteWhetherNodesAreRecorded();
  const Adding adding;
  if (!exit || !WantsRecord(*call)) return;
  call->end_ns = driver.now_ns();
  Buffers::Get().Add(MakeApiRecord(*call, ThreadId()));
}

void OnResource(const Resource& resource) {
  CUpti_ResourceData data{};
  data.context = resource.context;
  data.resourceHandle.stream = resource.stream;
  CUpti_ModuleResourceData module{};
  CUpti_GraphData graph{};
  // Code that is compiled at run time lies where other data is after loading.
  std::string code;
  if (resource.module_id != 0) {
    code = ModuleCode();
    module.moduleId = resource.module_id;
    module.cubinSize = code.size();
    if (module.cubinSize != 0) module.pCubin = code.data();
    data.resourceDescriptor = &module;
  } else if (resource.callback_id >= CUPTI_CBID_RESOURCE_GRAPH_CREATED) {
    graph.graph = resource.graph;
    graph.originalGraph = resource.original_graph;
    graph.node = resource.node;
    graph.originalNode = resource.original_node;
    graph.nodeType = static_cast<CUgraphNodeType>(resource.node_type);
    graph.dependency = resource.dependency;
    graph.graphExec = resource.exec;
    data.resourceDescriptor = &graph;
  }
  CallBack(CallbackSite::kResource, CUPTI_CB_DOMAIN_RESOURCE, resource.callback_id, &data);
  if (resource.callback_id == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
    EndSampling(resource.context);
  }
  code.assign(code.size(), '\x5a');
}

// GRAPH_TRACE replaces the records of all nodes, including memory operations: graph_trace.
bool Hidden(const Activity& activity) {
  return activity.kind != ActivityKind::kGraphTrace && activity.graph_id != 0 &&
         KindEnabled(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

void OnActivity(const Activity& activity) {
  const Adding adding;
  if (activity.kind == ActivityKind::kKernel) SampleKernel(activity);
  if (!KindEnabled(static_cast<uint32_t>(activity.kind)) || Hidden(activity)) return;
  const bool is_node = activity.kind != ActivityKind::kGraphTrace && activity.graph_id != 0;
  if (is_node) TheState().recorded_nodes = true;
  Buffers::Get().Add(MakeRecord(activity, ThreadId()));
}

const fake_cuda::Observer kObserver{&OnApi, &OnResource, &OnActivity};

}  // namespace

State& TheState() {
  static auto* const state = new State;
  return *state;
}

void Observe() {
  Buffers::Get().StartWorker();
  xpu_fake_driver()->set_observer(&kObserver);
}

void ReportUnfinished() { xpu_fake_driver()->report_unfinished(&OnActivity); }

bool KindEnabled(uint32_t kind) {
  if (kind == CUPTI_ACTIVITY_KIND_OVERHEAD && !TheSettings().overheads) return false;
  return kind < CUPTI_ACTIVITY_KIND_COUNT && TheState().kinds[kind].load();
}

CallbackSite CurrentCallback() { return t_site; }

void Forget() {
  State& state = TheState();
  xpu_fake_driver()->set_observer(nullptr);
  state.subscriber = nullptr;
  state.device_buffers = kDeviceBuffers;
  state.has_pinned_buffers = false;
  state.is_set_up = false;
  for (auto& kind : state.kinds) kind = false;
  for (auto& domain : state.callbacks) {
    for (auto& enabled : domain) enabled = false;
  }
  for (auto& domain : state.chosen_calls) {
    for (auto& chosen : domain) chosen = false;
  }
  while (g_adding.load() != 0) std::this_thread::yield();
  xpu_fake_driver()->restart_correlation_ids();
}

bool OverheadEnabled() { return KindEnabled(CUPTI_ACTIVITY_KIND_OVERHEAD); }

}  // namespace xpu::fake_cupti
