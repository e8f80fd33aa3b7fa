// The moments of a program (nodes) and what lies between them (edges): which of them can come only
// after which others, and how long after.
//
// A thread that is cut into a thousand pieces is a chain of nodes. Each node comes as soon as all
// of its edges allow it. What these do not explain counts for the one that came last, the binding
// one: so the binding edges, followed backwards, cover all time without a gap, and their sum is
// exactly what passed. A graph of activities as nodes was rejected: half of what a program does
// between two moments has no other end than the next one.
#pragma once

#include <cstdint>
#include <span>

#include "report/base/growing_array.h"
#include "report/base/huge_pages.h"

namespace xpu {

// The meaning of an edge.
enum class EdgeKind : uint8_t {
  kRunning,     // a thread runs
  kCall,        // a thread is in a call of CUDA
  kWait,        // a thread waits for something that is not in the graph: a timer, a disk, unknown
  kRunnable,    // a thread waits for a CPU
  kBlocked,     // a thread waits for what another edge brings
  kWakeUp,      // from the thread that ends a wait
  kKernel,      // GPU work
  kMemory,      // likewise
  kGraph,       // likewise
  kLaunch,      // from a call to its work
  kQueue,       // from GPU work to the next one on its stream
  kStreamWait,  // from GPU work to what waits for it on another stream
  kGpuWait,     // from GPU work to the call that waits for it
};

constexpr bool IsGpuWork(EdgeKind kind) {
  return kind == EdgeKind::kKernel || kind == EdgeKind::kMemory || kind == EdgeKind::kGraph;
}

struct Edge {
  uint32_t from = 0;   // a node
  uint32_t to = 0;     // likewise
  uint64_t ns = 0;     // at least so long after `from`
  uint32_t index = 0;  // of what it stands for, in a list that depends on the kind
  EdgeKind kind = EdgeKind::kRunning;
  bool is_assumed = false;  // nothing recorded says so
};

class DependencyGraph {
 public:
  uint32_t AddNode(uint64_t time_ns);
  // All of the time between its nodes. An edge back in time is left out.
  void AddActivity(Edge edge);
  // `edge.ns` of it, at most; the rest if it is the binding one.
  void AddDependency(Edge edge);
  // After the last of them, before what follows.
  void Finish();

  size_t size() const { return times_.size(); }
  uint64_t TimeOf(uint32_t node) const { return times_[node]; }
  std::span<const Edge> edges() const { return {edges_.begin(), edges_.size()}; }
  // The edges that end at the node.
  std::span<const Edge> EdgesTo(uint32_t node) const {
    return edges().subspan(first_to_[node], first_to_[node + 1] - first_to_[node]);
  }

  // The binding edges from `from_ns` to the node, in order of time; those that take no time are
  // left out. Less than that if it leads to a node that waits for nothing.
  HugePageVector<Edge> PathTo(uint32_t node, uint64_t from_ns) const;

  // When the node would come if each edge took scale(edge) nanoseconds instead. What is not
  // later than `from_ns` stays as it was.
  template <typename Scale>
  uint64_t Reevaluate(uint32_t node, uint64_t from_ns, Scale&& scale) const;

 private:
  void SortByTarget();
  void Order();

  GrowingArray<uint64_t> times_;
  GrowingArray<Edge> edges_;           // after Finish: by `to`
  HugePageVector<uint32_t> first_to_;  // by node: in edges_
  HugePageVector<uint32_t> order_;     // nodes, each after those that it depends on
};

template <typename Scale>
uint64_t DependencyGraph::Reevaluate(uint32_t node, uint64_t from_ns, Scale&& scale) const {
  HugePageVector<uint64_t> times(times_.begin(), times_.begin() + times_.size());
  for (const uint32_t at : order_) {
    if (times_[at] <= from_ns || first_to_[at] == first_to_[at + 1]) continue;
    uint64_t ns = 0;
    for (const Edge& edge : EdgesTo(at)) {
      const uint64_t then = times[edge.from] + scale(edge);
      if (then > ns) ns = then;
    }
    times[at] = ns;
    if (at == node) break;
  }
  return times[node];
}

}  // namespace xpu
