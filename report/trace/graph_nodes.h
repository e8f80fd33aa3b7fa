// Which node of the program's own graph a node of an executable CUDA graph comes from, and how
// large the executable graphs are.
//
// An instantiation clones each node, a graph may be cloned before, an update makes an executable
// graph do what another graph does, node by node: each change names the node that it was made from,
// back to the node that a call of the program created. Node ids are (graph id << 32 | index).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "format/events.h"

namespace xpu {

class GraphNodes {
 public:
  // `changes` in order of time; must outlive this.
  explicit GraphNodes(const std::vector<GraphNode>& changes);

  struct Origin {
    const GraphNode* created = nullptr;  // nullptr: not known
    // Something is known of the graph in which the search ended. When nothing is, the graph was
    // there before the recording.
    bool graph_is_known = false;
  };
  // Where the node came from, as it was at `time_ns`.
  Origin OriginOf(InstanceId instance, uint64_t node_id, uint64_t time_ns) const;

  struct Size {
    uint64_t nodes = 0;
    uint64_t kernels = 0;          // those of them that are known to be kernels
    uint64_t copies_and_sets = 0;  // likewise
  };
  // The size of an executable graph, or of a clone; all 0: not known.
  Size SizeOf(InstanceId instance, uint32_t graph_id) const;
  // Updates of whole graphs that do not say which: an origin reported may be an older one.
  uint64_t updates_of_unknown() const { return updates_of_unknown_; }

 private:
  struct Key {
    InstanceId instance;
    uint64_t id = 0;
    bool operator==(const Key&) const = default;
  };
  struct HashKey {
    size_t operator()(const Key& key) const {
      return std::hash<uint64_t>{}((key.instance.value ^ key.id) * 0x9e3779b97f4a7c15ull);
    }
  };
  struct Node {
    const GraphNode* clone = nullptr;  // the first change that made it one
    std::vector<const GraphNode*> creations;
    std::vector<const GraphNode*> origins;  // clones and updates that name an original
  };

  struct Graph {
    Size size;                              // of clones
    std::vector<const GraphNode*> updates;  // of the graph as a whole
  };

  static bool IsOfSameOriginal(const Node& node, const GraphNode& change);
  void CountSizes();
  const GraphNode* UpdateOf(InstanceId instance, uint64_t node_id, uint64_t time_ns) const;

  std::unordered_map<Key, Node, HashKey> nodes_;
  std::unordered_map<Key, Graph, HashKey> graphs_;  // those of which something is known
  uint64_t updates_of_unknown_ = 0;
};

// The graph of a record: older versions of CUPTI leave graph_id 0.
inline uint32_t GraphIdOf(uint32_t graph_id, uint64_t node_id) {
  return graph_id != 0 ? graph_id : static_cast<uint32_t>(node_id >> 32);
}

}  // namespace xpu
