// Stream capture and graphs. The resource callbacks come in the order of the capture graph_nodes,
// less the nodes that the real driver makes for itself after GRAPHEXEC_CREATE_STARTING.
#include "calls.h"

using namespace xpu::fake_cuda;

namespace {

// Values of CUpti_CallbackIdResource.
enum : uint32_t {
  kGraphCreated = 9,
  kGraphDestroyStarting = 10,
  kNodeCreateStarting = 12,
  kNodeCreated = 13,
  kNodeDestroyStarting = 14,
  kDependencyCreated = 15,
  kExecCreateStarting = 17,
  kExecCreated = 18,
  kExecDestroyStarting = 19,
  kNodeCloned = 20,
};

uint32_t NewGraphId() {
  const std::lock_guard lock(TheDevice().mutex);
  return TheDevice().next_graph_id++;
}

uint32_t NodeType(const Activity& activity) {  // CUgraphNodeType
  switch (activity.kind) {
    case ActivityKind::kMemcpy:
      return 1;
    case ActivityKind::kMemset:
      return 2;
    default:
      return 0;
  }
}

CUgraphNode NewNode(CUgraph graph, const Activity& activity, uint64_t duration_ns,
                    CUfunction function) {
  Announce({.callback_id = kNodeCreateStarting, .graph = graph, .node_type = NodeType(activity)});
  auto node = std::make_unique<CUgraphNode_st>();
  node->id = uint64_t{graph->id} << 32 | graph->nodes.size();
  node->type = NodeType(activity);
  node->activity = activity;
  node->duration_ns = duration_ns;
  node->function = function;
  graph->nodes.push_back(std::move(node));
  return graph->nodes.back().get();
}

// node_type is 0 here in the real capture, whatever the node is.
void AnnounceNode(CUgraph graph, CUgraphNode node) {
  Announce({.callback_id = kNodeCreated, .graph = graph, .node = node});
}

void AnnounceDependencies(CUgraph graph) {
  for (size_t i = 1; i < graph->nodes.size(); ++i) {
    Announce({.callback_id = kDependencyCreated,
              .graph = graph,
              .node = graph->nodes[i].get(),
              .dependency = graph->nodes[i - 1].get()});
  }
}

void AnnounceDestruction(CUgraph graph) {
  Announce({.callback_id = kGraphDestroyStarting, .graph = graph});
  for (const auto& node : graph->nodes) {
    Announce({.callback_id = kNodeDestroyStarting, .graph = graph, .node = node.get()});
  }
}

void CloneNodes(CUgraph from, CUgraph to) {
  for (const auto& node : from->nodes) {
    CUgraphNode clone = NewNode(to, node->activity, node->duration_ns, node->function);
    AnnounceNode(to, clone);
    Announce({.callback_id = kNodeCloned,
              .graph = to,
              .original_graph = from,
              .node = clone,
              .original_node = node.get()});
  }
  AnnounceDependencies(to);
}

// Once and for all replays: the kernels of graph_nodes have 3 to 22 each time, behind a set.
void AssignGridIds(CUgraph graph) {
  const std::lock_guard lock(TheDevice().mutex);
  int64_t& next = TheDevice().next_grid_id;
  for (const auto& node : graph->nodes) {
    node->activity.grid_id = next;
    next += node->activity.kind == ActivityKind::kMemset ? 2 : GridIds(node->activity);
  }
}

// The real driver makes a second copy whose nodes are announced but never finished.
void AnnounceInternalCopy(CUgraph original) {
  CUgraph_st copy;
  copy.id = NewGraphId();
  Announce({.callback_id = kGraphCreated, .graph = &copy});
  for (const auto& node : original->nodes) NewNode(&copy, node->activity, 0, nullptr);
  AnnounceDependencies(&copy);
}

// A graph has a stream of its own (graph_nodes, record 19), without a callback.
void EmitOwnStream(uint32_t correlation_id) {
  Activity stream{ActivityKind::kStream};
  stream.context_id = 1;
  stream.type = 2;
  stream.correlation_id = correlation_id;
  {
    const std::lock_guard lock(TheDevice().mutex);
    stream.stream_id = TheDevice().next_stream_id++;
  }
  Emit(stream);
}

struct GraphLaunchParams {
  CUgraphExec exec;
  CUstream stream;
};

// One replay: its nodes one after the other, each with its record, and the record of the whole.
// libcupti leaves out the ones or the other.
void Replay(const CUgraph_st& graph, CUstream stream, uint32_t correlation_id) {
  constexpr uint64_t kNodeGapNs = 100;
  stream = Resolve(stream);
  Device& device = TheDevice();
  uint64_t duration_ns = 0;
  for (const auto& node : graph.nodes) duration_ns += node->duration_ns + kNodeGapNs;
  Activity whole{ActivityKind::kGraphTrace};
  {
    const std::lock_guard lock(device.mutex);
    whole.start_ns = std::max(NowNs() + device.launch_latency_ns, stream->tail_ns + device.gap_ns);
    whole.end_ns = whole.start_ns + duration_ns;
    stream->tail_ns = whole.end_ns;
  }
  whole.correlation_id = correlation_id;
  whole.context_id = 1;
  whole.stream_id = stream->id;
  whole.graph_id = graph.id;
  uint64_t at_ns = whole.start_ns;
  for (const auto& node : graph.nodes) {
    Activity activity = node->activity;
    activity.correlation_id = correlation_id;
    activity.context_id = 1;
    activity.stream_id = stream->id;
    activity.graph_id = graph.id;
    activity.graph_node_id = node->id;
    UseChannel(*stream, &activity);
    activity.start_ns = at_ns;
    activity.end_ns = at_ns + node->duration_ns;
    at_ns = activity.end_ns + kNodeGapNs;
    Emit(activity);
  }
  Emit(whole);
}

}  // namespace

void xpu::fake_cuda::AddNode(CUgraph graph, const Activity& activity, uint64_t duration_ns,
                             CUfunction function) {
  const CUgraphNode before = graph->nodes.empty() ? nullptr : graph->nodes.back().get();
  const CUgraphNode node = NewNode(graph, activity, duration_ns, function);
  if (before != nullptr) {
    Announce(
        {.callback_id = kDependencyCreated, .graph = graph, .node = node, .dependency = before});
  }
  AnnounceNode(graph, node);
}

extern "C" {

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode /*mode*/) {
  DriverScope scope(539, "cuStreamBeginCapture_v2");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  if (stream == nullptr) return scope.Return(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  auto* graph = new CUgraph_st;
  graph->id = NewGraphId();
  stream->capture = graph;
  Announce({.callback_id = kGraphCreated, .graph = graph});
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  DriverScope scope(497, "cuStreamEndCapture");
  if (stream == nullptr || stream->capture == nullptr) {
    return scope.Return(CUDA_ERROR_INVALID_VALUE);
  }
  *graph = stream->capture;
  stream->capture = nullptr;
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                     unsigned long long /*flags*/) {
  DriverScope scope(643, "cuGraphInstantiateWithFlags");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  auto* made = new CUgraphExec_st;
  made->graph.id = NewGraphId();
  Announce({.callback_id = kGraphCreated, .graph = &made->graph});
  CloneNodes(graph, &made->graph);
  AssignGridIds(&made->graph);
  AnnounceInternalCopy(graph);
  EmitOwnStream(scope.correlation_id());
  Announce({.callback_id = kExecCreateStarting, .context = &TheDevice().context, .graph = graph});
  Announce(
      {.callback_id = kExecCreated, .context = &TheDevice().context, .graph = graph, .exec = made});
  *exec = made;
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  const GraphLaunchParams params{exec, stream};
  DriverScope scope(514, "cuGraphLaunch", &params);
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  Replay(exec->graph, stream, scope.correlation_id());
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph graph) {
  DriverScope scope(517, "cuGraphDestroy");
  AnnounceDestruction(graph);
  delete graph;
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  DriverScope scope(516, "cuGraphExecDestroy");
  Announce({.callback_id = kExecDestroyStarting, .exec = exec});
  AnnounceDestruction(&exec->graph);
  delete exec;
  return scope.Return(CUDA_SUCCESS);
}

}  // extern "C"
