#include "cupti_inject/graph_nodes.h"

#include "cupti_inject/thread_state.h"

namespace xpu::inject {
namespace {

enum class Change : uint32_t { kCreated, kCloned, kUpdated, kGraphUpdated };  // GraphNodeChange

constexpr uint32_t kNodeCallbacks[] = {
    cupti::kResourceNodeCreateStarting, cupti::kResourceNodeCreated, cupti::kResourceNodeCloned,
    cupti::kResourceNodeDestroyStarting, cupti::kResourceExecCreated,
    // Of newer versions.
    cupti::kResourceNodeUpdated, cupti::kResourceNodeSetParameters};
constexpr size_t kNeededCallbacks = 5;

uint64_t NodeId(const Injection& self, void* node) {
  uint64_t id = 0;
  if (node != nullptr) self.cupti.get_graph_node_id(node, &id);
  return id;
}

uint32_t GraphId(const Injection& self, void* graph) {
  uint32_t id = 0;
  if (graph != nullptr) self.cupti.get_graph_id(graph, &id);
  return id;
}

// 0: CUPTI is too old to tell.
uint32_t ExecutableId(const Injection& self, void* graph_exec) {
  uint32_t id = 0;
  if (graph_exec == nullptr || self.cupti.get_graph_exec_id == nullptr) return id;
  self.cupti.get_graph_exec_id(graph_exec, &id);
  return id;
}

struct Node {
  uint64_t id;
  uint64_t original_id;
  uint32_t graph_id;
  uint32_t type;
};

void Send(Injection& self, Change change, const Node& node) {
  ThreadState& thread = CurrentThread();
  const TrackedCall* call = thread.tracker.Current();
  wire::GraphNodeMessage message{};
  message.time_ns = MonotonicNs();
  message.node_id = node.id;
  message.original_node_id = node.original_id;
  message.graph_id = node.graph_id;
  message.node_type = node.type;
  message.change = static_cast<uint32_t>(change);
  message.tid = CurrentTid(thread);
  message.correlation_id = call == nullptr ? 0 : call->correlation_id;
  if (!self.ring.Send(wire::MessageKind::kGraphNode, message)) {
    self.ring.Count(wire::kCounterOthersDropped);
  }
}

void OnCreated(Injection& self, const cupti::GraphData& data) {
  ThreadState& thread = CurrentThread();
  if (TrackedCall* call = thread.tracker.Current()) ++call->graph_nodes;
  Send(self, Change::kCreated,
       {NodeId(self, data.node), 0, GraphId(self, data.graph), thread.starting.TypeIn(data.graph)});
}

void OnCloned(Injection& self, const cupti::GraphData& data) {
  ThreadState& thread = CurrentThread();
  const uint64_t id = NodeId(self, data.node);
  Send(self, Change::kCloned,
       {id, NodeId(self, data.original_node), GraphId(self, data.graph),
        thread.starting.TypeIn(data.graph)});
  const TrackedCall* call = thread.tracker.Current();
  if (call != nullptr) self.instantiated.Add({data.node, id, call->correlation_id});
}

void OnExecutableCreated(Injection& self, const cupti::GraphData& data) {
  const TrackedCall* call = CurrentThread().tracker.Current();
  if (call == nullptr) return;
  InstantiatedNodes::Node node;
  while (self.instantiated.Take(call->correlation_id, &node)) {
    const uint64_t id = NodeId(self, node.handle);
    if (id == node.id || id == 0) continue;
    Send(self, Change::kCloned, {id, node.id, ExecutableId(self, data.graph_exec), 0});
  }
}

}  // namespace

bool WatchGraphNodes(const Injection& self) {
  if (self.cupti.get_graph_node_id == nullptr || self.cupti.get_graph_id == nullptr) return false;
  size_t enabled = 0;
  for (uint32_t id : kNodeCallbacks) {
    if (self.cupti.enable_callback(1, self.subscriber, cupti::kDomainResource, id) !=
        cupti::kSuccess) {
      break;
    }
    ++enabled;
  }
  return enabled >= kNeededCallbacks;
}

void OnGraphNode(Injection& self, uint32_t callback_id, const cupti::GraphData& data) {
  switch (callback_id) {
    case cupti::kResourceNodeCreateStarting:
      return CurrentThread().starting.Set(data.graph, data.node_type);
    case cupti::kResourceNodeCreated:
      return OnCreated(self, data);
    case cupti::kResourceNodeCloned:
      return OnCloned(self, data);
    case cupti::kResourceNodeDestroyStarting:
      return self.instantiated.Remove(data.node);
    case cupti::kResourceExecCreated:
      return OnExecutableCreated(self, data);
    case cupti::kResourceNodeUpdated:
    case cupti::kResourceNodeSetParameters:
      return Send(self, Change::kUpdated,
                  {NodeId(self, data.node), NodeId(self, data.original_node),
                   GraphId(self, data.graph), data.node_type});
    default:
      return;
  }
}

// No resource callback tells it. Where the executable graph has no id the update counts as one of
// an unknown graph.
void OnGraphUpdated(Injection& self, const cupti::GraphExecUpdateParameters& parameters) {
  if (self.cupti.get_graph_id == nullptr) return;
  const uint64_t source = GraphId(self, parameters.graph);
  Send(self, Change::kGraphUpdated,
       {0, source << 32, ExecutableId(self, parameters.graph_exec), 0});
}

void ForgetNodes(Injection& self, uint32_t correlation_id) {
  InstantiatedNodes::Node node;
  while (self.instantiated.Take(correlation_id, &node)) {
  }
}

void NoteGraphThread(ThreadState& thread) {
  const uint32_t tid = CurrentTid(thread);
  uint32_t known = g_process.graph_thread.load(std::memory_order_relaxed);
  if (known == tid || known == kSeveralThreads) return;
  if (known == 0 && g_process.graph_thread.compare_exchange_strong(known, tid)) return;
  g_process.graph_thread.store(kSeveralThreads);
}

}  // namespace xpu::inject
