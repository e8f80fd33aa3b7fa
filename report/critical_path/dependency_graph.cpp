#include "report/critical_path/dependency_graph.h"

#include <algorithm>

namespace xpu {

uint32_t DependencyGraph::AddNode(uint64_t time_ns) {
  times_.push_back(time_ns);
  return static_cast<uint32_t>(times_.size() - 1);
}

void DependencyGraph::AddActivity(Edge edge) {
  if (times_[edge.from] > times_[edge.to]) return;
  edge.ns = times_[edge.to] - times_[edge.from];
  edges_.push_back(edge);
}

void DependencyGraph::AddDependency(Edge edge) {
  if (times_[edge.from] > times_[edge.to] || edge.from == edge.to) return;
  edge.ns = std::min(edge.ns, times_[edge.to] - times_[edge.from]);
  edges_.push_back(edge);
}

void DependencyGraph::Finish() {
  first_to_.assign(times_.size() + 1, 0);
  for (const Edge& edge : edges_) ++first_to_[edge.to + 1];
  for (size_t i = 0; i < times_.size(); ++i) first_to_[i + 1] += first_to_[i];
  SortByTarget();
  Order();
  for (uint32_t at = 0; at < times_.size(); ++at) {
    Edge* binding = nullptr;
    for (size_t i = first_to_[at]; i < first_to_[at + 1]; ++i) {
      Edge& edge = edges_[i];
      if (binding == nullptr || times_[edge.from] + edge.ns > times_[binding->from] + binding->ns) {
        binding = &edge;
      }
    }
    if (binding != nullptr) binding->ns = times_[at] - times_[binding->from];
  }
}

void DependencyGraph::SortByTarget() {
  HugePageVector<uint32_t> next(first_to_.begin(), first_to_.end() - 1);
  GrowingArray<Edge> sorted;
  sorted.Resize(edges_.size());
  for (const Edge& edge : edges_) sorted[next[edge.to]++] = edge;
  edges_ = std::move(sorted);
}

// Edges never lead back in time, but nodes of one time may depend on each other in a capture
// that is damaged: those come last, in order of time.
void DependencyGraph::Order() {
  HugePageVector<uint32_t> first_from(times_.size() + 1);
  for (const Edge& edge : edges_) ++first_from[edge.from + 1];
  for (size_t i = 0; i < times_.size(); ++i) first_from[i + 1] += first_from[i];
  HugePageVector<uint32_t> next(first_from.begin(), first_from.end() - 1);
  HugePageVector<uint32_t> targets(edges_.size());
  for (const Edge& edge : edges_) targets[next[edge.from]++] = edge.to;
  HugePageVector<uint32_t> open(times_.size());
  for (size_t i = 0; i < times_.size(); ++i) open[i] = first_to_[i + 1] - first_to_[i];
  order_.clear();
  order_.reserve(times_.size());
  for (uint32_t i = 0; i < times_.size(); ++i) {
    if (open[i] == 0) order_.push_back(i);
  }
  for (size_t done = 0; done < order_.size(); ++done) {
    const uint32_t at = order_[done];
    for (uint32_t i = first_from[at]; i < first_from[at + 1]; ++i) {
      if (--open[targets[i]] == 0) order_.push_back(targets[i]);
    }
  }
  if (order_.size() == times_.size()) return;
  const auto rest = static_cast<ptrdiff_t>(order_.size());
  for (uint32_t i = 0; i < times_.size(); ++i) {
    if (open[i] != 0) order_.push_back(i);
  }
  std::stable_sort(order_.begin() + rest, order_.end(),
                   [this](uint32_t a, uint32_t b) { return times_[a] < times_[b]; });
}

HugePageVector<Edge> DependencyGraph::PathTo(uint32_t node, uint64_t from_ns) const {
  HugePageVector<Edge> path;
  // No path has more edges than there are nodes, unless it goes round.
  for (size_t i = 0; i < times_.size() && times_[node] > from_ns; ++i) {
    const std::span<const Edge> edges = EdgesTo(node);
    if (edges.empty()) break;
    const Edge* binding = &edges.front();
    for (const Edge& edge : edges) {
      if (times_[edge.from] + edge.ns > times_[binding->from] + binding->ns) binding = &edge;
    }
    if (binding->ns > 0) path.push_back(*binding);
    node = binding->from;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace xpu
