#include "report/trace/graph_nodes.h"

#include <algorithm>

namespace xpu {
namespace {

// Changes from an executable graph's node to the created one are two or three. A damaged capture
// may hold a circle.
constexpr int kMaxChanges = 64;
// Values of CUgraphNodeType.
constexpr uint32_t kKernelNode = 0;
constexpr uint32_t kCopyNode = 1;
constexpr uint32_t kSetNode = 2;
constexpr uint32_t kChildGraphNode = 4;

// The last change that is not later than `time_ns`. When all are later the first: clocks are
// fitted, and a node is not used before it is there.
const GraphNode* At(const std::vector<const GraphNode*>& changes, uint64_t time_ns) {
  if (changes.empty()) return nullptr;
  const auto later =
      std::partition_point(changes.begin(), changes.end(),
                           [&](const GraphNode* change) { return change->time_ns <= time_ns; });
  return later == changes.begin() ? changes.front() : *(later - 1);
}

}  // namespace

GraphNodes::GraphNodes(const std::vector<GraphNode>& changes) {
  for (const GraphNode& change : changes) {
    const uint32_t graph_id = GraphIdOf(change.graph_id, change.node_id);
    if (change.change == GraphNodeChange::kGraphUpdated && graph_id == 0) {
      ++updates_of_unknown_;
      continue;
    }
    Graph& graph = graphs_[{change.instance, graph_id}];
    if (change.change == GraphNodeChange::kGraphUpdated) {
      graph.updates.push_back(&change);
      continue;
    }
    Node& node = nodes_[{change.instance, change.node_id}];
    if (change.change == GraphNodeChange::kCloned && node.clone == nullptr) node.clone = &change;
    if (change.change == GraphNodeChange::kCreated) {
      node.creations.push_back(&change);
    } else if (change.original_node_id != 0 && !IsOfSameOriginal(node, change)) {
      node.origins.push_back(&change);
    }
  }
  CountSizes();
}

// New parameters for a node: CUPTI names the original that it was cloned from, whatever the graph
// as a whole was updated to since.
bool GraphNodes::IsOfSameOriginal(const Node& node, const GraphNode& change) {
  return change.change == GraphNodeChange::kUpdated && node.clone != nullptr &&
         node.clone->original_node_id == change.original_node_id;
}

void GraphNodes::CountSizes() {
  for (const auto& [key, node] : nodes_) {
    if (node.clone == nullptr) continue;
    const GraphNode& cloned = *node.clone;
    const GraphNode* created = OriginOf(key.instance, key.id, cloned.time_ns).created;
    // The nodes of a child graph become the executable graph's own; what held them does nothing.
    if (created != nullptr && created->node_type == kChildGraphNode) continue;
    Size& size = graphs_[{key.instance, GraphIdOf(cloned.graph_id, cloned.node_id)}].size;
    ++size.nodes;
    if (created == nullptr) continue;
    if (created->node_type == kKernelNode) ++size.kernels;
    if (created->node_type == kCopyNode || created->node_type == kSetNode) ++size.copies_and_sets;
  }
}

// The last one of the node's whole graph that is not later than `time_ns`.
const GraphNode* GraphNodes::UpdateOf(InstanceId instance, uint64_t node_id,
                                      uint64_t time_ns) const {
  const auto graph = graphs_.find({instance, node_id >> 32});
  if (graph == graphs_.end()) return nullptr;
  const GraphNode* update = At(graph->second.updates, time_ns);
  return update != nullptr && update->time_ns <= time_ns ? update : nullptr;
}

// An origin wins over a creation: CUPTI also reports the creation of the node that becomes a clone.
GraphNodes::Origin GraphNodes::OriginOf(InstanceId instance, uint64_t node_id,
                                        uint64_t time_ns) const {
  for (int i = 0; i < kMaxChanges; ++i) {
    const auto node = nodes_.find({instance, node_id});
    const bool is_known = node != nodes_.end();
    const GraphNode* origin = is_known ? At(node->second.origins, time_ns) : nullptr;
    const GraphNode* update = UpdateOf(instance, node_id, time_ns);
    if (update != nullptr && (origin == nullptr || update->time_ns >= origin->time_ns)) {
      // It is not known to what: what the node did before is no answer.
      if (update->original_node_id == 0) return {nullptr, true};
      node_id = update->original_node_id >> 32 << 32 | (node_id & 0xffffffff);
      time_ns = update->time_ns;
      continue;
    }
    if (!is_known) return {nullptr, graphs_.contains({instance, node_id >> 32})};
    if (origin == nullptr) return {At(node->second.creations, time_ns), true};
    node_id = origin->original_node_id;
    time_ns = origin->time_ns;
  }
  return {nullptr, true};
}

GraphNodes::Size GraphNodes::SizeOf(InstanceId instance, uint32_t graph_id) const {
  const auto found = graphs_.find({instance, graph_id});
  return found == graphs_.end() ? Size{} : found->second.size;
}

}  // namespace xpu
