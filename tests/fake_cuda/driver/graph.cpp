// The resource callbacks come in the order of the capture graph_nodes, less the nodes that the real
// driver makes for itself after GRAPHEXEC_CREATE_STARTING; those of clones, child graphs, updates
// and parameters in the order of graph_paths.
#include "graph.h"

#include <algorithm>
#include <atomic>

namespace xpu::fake_cuda {
namespace {

std::atomic<bool> g_has_executable_graphs{false};

enum : uint32_t { kHostNode = 3, kChildNode = 4 };  // CUgraphNodeType

uint32_t NewGraphId() {
  const std::lock_guard lock(TheDevice().mutex);
  return TheDevice().next_graph_id++;
}

uint32_t NodeType(const Work& work, bool has_child) {
  if (has_child) return kChildNode;
  switch (work.activity.kind) {
    case ActivityKind::kMemcpy:
    case ActivityKind::kMemcpyPeer:
      return 1;
    case ActivityKind::kMemset:
      return 2;
    case ActivityKind::kKernel:
      return 0;
    default:
      return kHostNode;
  }
}

CUgraphNode NewNode(CUgraph graph, const Work& work, std::vector<size_t> dependencies,
                    bool has_child) {
  const uint32_t type = NodeType(work, has_child);
  Announce({.callback_id = kNodeCreateStarting, .graph = graph, .node_type = type});
  auto node = std::make_unique<CUgraphNode_st>();
  node->id = uint64_t{graph->id} << 32 | graph->nodes.size();
  node->type = type;
  node->work = work;
  node->dependencies = std::move(dependencies);
  graph->nodes.push_back(std::move(node));
  return graph->nodes.back().get();
}

// node_type is 0 here in the real capture, whatever the node is.
void AnnounceNode(CUgraph graph, CUgraphNode node) {
  Announce({.callback_id = kNodeCreated, .graph = graph, .node = node});
}

void AnnounceDependencies(CUgraph graph, CUgraphNode node) {
  for (const size_t index : node->dependencies) {
    Announce({.callback_id = kDependencyCreated,
              .graph = graph,
              .node = node,
              .dependency = graph->nodes[index].get()});
  }
}

void AnnounceAllDependencies(CUgraph graph) {
  for (const auto& node : graph->nodes) AnnounceDependencies(graph, node.get());
}

std::unique_ptr<CUgraph_st> CopyOfGraph(CUgraph original) {
  auto copy = std::make_unique<CUgraph_st>();
  copy->id = NewGraphId();
  Announce({.callback_id = kGraphCreated, .graph = copy.get()});
  CloneNodes(original, copy.get());
  return copy;
}

// Once and for all replays: the kernels of graph_nodes have 3 to 22 each time, after a memset.
void AssignGridIds(CUgraph graph) {
  for (const auto& node : graph->nodes) {
    if (node->child != nullptr) AssignGridIds(node->child.get());
    const std::lock_guard lock(TheDevice().mutex);
    int64_t& next = TheDevice().next_grid_id;
    Activity& activity = node->work.activity;
    activity.grid_id = next;
    next += activity.kind == ActivityKind::kMemset ? 2 : GridIds(activity);
  }
}

// The real driver makes a second copy whose nodes are announced but never finished.
void AnnounceInternalCopy(CUgraph original) {
  CUgraph_st copy;
  copy.id = NewGraphId();
  Announce({.callback_id = kGraphCreated, .graph = &copy});
  for (const auto& node : original->nodes) {
    NewNode(&copy, Work{node->work.activity, 0, nullptr}, node->dependencies,
            node->child != nullptr);
    if (node->child != nullptr) AnnounceInternalCopy(node->child.get());
  }
  AnnounceAllDependencies(&copy);
}

// The nodes of child graphs become nodes of the executable graph, with new ids: graph_paths, where
// no callback of a creation tells these ids, and a dependency is the first to name one.
void DissolveChildren(CUgraph graph) {
  uint64_t next_index = graph->nodes.size();
  for (const auto& holder : graph->nodes) {
    if (holder->child == nullptr) continue;
    for (const auto& node : holder->child->nodes) {
      node->id = uint64_t{graph->id} << 32 | next_index++;
      if (node != holder->child->nodes.front()) continue;
      for (const size_t index : holder->dependencies) {
        const CUgraphNode before = graph->nodes[index].get();
        Announce({.callback_id = kDependencyCreated,
                  .graph = graph,
                  .node = node.get(),
                  .dependency = before});
        Announce({.callback_id = kDependencyDestroyStarting,
                  .graph = graph,
                  .node = holder.get(),
                  .dependency = before});
      }
    }
    Announce({.callback_id = kNodeDestroyStarting, .graph = graph, .node = holder.get()});
    Announce({.callback_id = kGraphDestroyStarting, .graph = holder->child.get()});
    holder->dissolved = true;
  }
}

// A graph has a stream of its own (graph_nodes, record 19), without a callback.
void EmitOwnStream(uint32_t correlation_id) {
  Activity stream{ActivityKind::kStream};
  stream.context_id = ContextId(CurrentContext());
  stream.type = 2;
  stream.correlation_id = correlation_id;
  {
    const std::lock_guard lock(TheDevice().mutex);
    stream.stream_id = TheDevice().next_stream_id++;
  }
  Emit(stream);
}

// The nodes that do something, child graphs unfolded, in an order that the dependencies allow.
void Flatten(const CUgraph_st& graph, std::vector<const CUgraphNode_st*>* nodes) {
  for (const auto& node : graph.nodes) {
    if (node->child != nullptr) {
      Flatten(*node->child, nodes);
    } else if (node->work.activity.kind != ActivityKind::kNone) {
      nodes->push_back(node.get());
    }
  }
}

bool SameShape(const CUgraph_st& one, const CUgraph_st& other) {
  return std::equal(one.nodes.begin(), one.nodes.end(), other.nodes.begin(), other.nodes.end(),
                    [](const auto& a, const auto& b) {
                      return a->type == b->type && a->dependencies == b->dependencies &&
                             (a->child == nullptr || SameShape(*a->child, *b->child));
                    });
}

// Without any callback: graph_paths.
void UpdateNodes(CUgraph nodes, CUgraph graph) {
  for (size_t i = 0; i < nodes->nodes.size(); ++i) {
    CUgraphNode node = nodes->nodes[i].get();
    CUgraphNode source = graph->nodes[i].get();
    if (node->child != nullptr) UpdateNodes(node->child.get(), source->child.get());
    const int64_t grid_id = node->work.activity.grid_id;
    node->work = source->work;
    node->work.activity.grid_id = grid_id;
  }
}

}  // namespace

CUgraph NewGraph() {
  auto* graph = new CUgraph_st;
  graph->id = NewGraphId();
  Announce({.callback_id = kGraphCreated, .graph = graph});
  return graph;
}

void CaptureWork(CUstream stream, const Work& work) {
  CUgraph graph = stream->capture;
  CUgraphNode node = NewNode(graph, work, stream->capture_tail, false);
  AnnounceDependencies(graph, node);
  AnnounceNode(graph, node);
  stream->capture_tail = {graph->nodes.size() - 1};
}

void JoinCapture(CUstream stream, CUgraph graph, const std::vector<size_t>& dependencies) {
  if (stream->capture == nullptr) graph->capturing.push_back(stream);
  stream->capture = graph;
  for (const size_t node : dependencies) {
    auto& tail = stream->capture_tail;
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
}

CUgraph LeaveCapture(CUstream stream) {
  CUgraph graph = stream->capture;
  for (CUstream one : graph->capturing) {
    one->capture = nullptr;
    one->capture_tail.clear();
  }
  graph->capturing.clear();
  return graph;
}

CUgraphNode AddNode(CUgraph graph, const CUgraphNode* dependencies, size_t dependency_count,
                    const Work& work, CUgraph child) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < dependency_count; ++i) {
    indices.push_back(static_cast<uint32_t>(dependencies[i]->id));  // the id's low half
  }
  CUgraphNode node = NewNode(graph, work, std::move(indices), child != nullptr);
  if (child != nullptr) node->child = CopyOfGraph(child);
  AnnounceDependencies(graph, node);
  AnnounceNode(graph, node);
  return node;
}

void CloneNodes(CUgraph from, CUgraph to) {
  for (const auto& node : from->nodes) {
    CUgraphNode clone = NewNode(to, node->work, node->dependencies, node->child != nullptr);
    clone->origin_id = node->id;
    if (node->child != nullptr) clone->child = CopyOfGraph(node->child.get());
    AnnounceNode(to, clone);
    Announce({.callback_id = kNodeCloned,
              .graph = to,
              .original_graph = from,
              .node = clone,
              .original_node = node.get()});
  }
  AnnounceAllDependencies(to);
}

bool HasExecutableGraphs() { return g_has_executable_graphs.load(); }

CUgraphExec Instantiate(CUgraph graph, uint32_t correlation_id) {
  g_has_executable_graphs.store(true);
  auto* made = new CUgraphExec_st;
  made->graph.id = NewGraphId();
  Announce({.callback_id = kGraphCreated, .graph = &made->graph});
  CloneNodes(graph, &made->graph);
  AssignGridIds(&made->graph);
  AnnounceInternalCopy(graph);
  EmitOwnStream(correlation_id);
  const CUcontext context = CurrentContext();
  Announce({.callback_id = kExecCreateStarting, .context = context, .graph = graph});
  DissolveChildren(&made->graph);
  Announce({.callback_id = kExecCreated, .context = context, .graph = graph, .exec = made});
  return made;
}

bool Update(CUgraphExec exec, CUgraph graph) {
  if (!SameShape(exec->graph, *graph)) return false;
  UpdateNodes(&exec->graph, graph);
  return true;
}

CUgraphNode CopyOf(CUgraphExec exec, uint64_t node_id) {
  for (const auto& node : exec->graph.nodes) {
    if (node->origin_id == node_id) return node.get();
  }
  return nullptr;
}

void AnnounceDestruction(CUgraph graph) {
  Announce({.callback_id = kGraphDestroyStarting, .graph = graph});
  for (const auto& node : graph->nodes) {
    if (node->dissolved) {
      for (const auto& inner : node->child->nodes) {
        Announce({.callback_id = kNodeDestroyStarting, .graph = graph, .node = inner.get()});
      }
      continue;
    }
    Announce({.callback_id = kNodeDestroyStarting, .graph = graph, .node = node.get()});
    if (node->child != nullptr) AnnounceDestruction(node->child.get());
  }
}

// Its nodes one after the other, each with its record, and the record of the whole. libcupti leaves
// out the ones or the other.
void Replay(CUgraphExec exec, CUstream stream, uint32_t correlation_id) {
  constexpr uint64_t kNodeGapNs = 100;
  Device& device = TheDevice();
  std::vector<const CUgraphNode_st*> nodes;
  Flatten(exec->graph, &nodes);
  std::vector<Activity> activities;
  Activity whole{ActivityKind::kGraphTrace};
  {
    const std::lock_guard lock(device.mutex);
    whole.start_ns = std::max(NowNs() + kLaunchLatencyNs, stream->tail_ns + kGapNs);
    whole.end_ns = whole.start_ns;
    for (const CUgraphNode_st* node : nodes) {
      Activity& activity = activities.emplace_back(node->work.activity);
      activity.graph_node_id = node->id;
      Schedule(stream->context, whole.end_ns, node->work.duration_ns, &activity);
      whole.end_ns = activity.end_ns + kNodeGapNs;
    }
    stream->tail_ns = whole.end_ns;
  }
  whole.correlation_id = correlation_id;
  whole.device_id = stream->context->ordinal;
  whole.context_id = ContextId(stream->context);
  whole.stream_id = stream->id;
  whole.graph_id = exec->graph.id;
  for (Activity& activity : activities) {
    activity.correlation_id = correlation_id;
    activity.device_id = whole.device_id;
    activity.context_id = whole.context_id;
    activity.stream_id = stream->id;
    activity.graph_id = exec->graph.id;
    UseChannel(*stream, &activity);
    Emit(activity);
  }
  Emit(whole);
}

}  // namespace xpu::fake_cuda
