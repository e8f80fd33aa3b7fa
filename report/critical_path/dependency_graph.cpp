#include "report/critical_path/dependency_graph.h"

#include <algorithm>

namespace xpu {

uint32_t DependencyGraph::AddMoment(uint64_t time_ns) {
  times_.push_back(time_ns);
  return static_cast<uint32_t>(times_.size() - 1);
}

void DependencyGraph::AddActivity(Arrow arrow) {
  if (times_[arrow.from] > times_[arrow.to]) return;
  arrow.ns = times_[arrow.to] - times_[arrow.from];
  arrows_.push_back(arrow);
}

void DependencyGraph::AddDependency(Arrow arrow) {
  if (times_[arrow.from] > times_[arrow.to] || arrow.from == arrow.to) return;
  arrow.ns = std::min(arrow.ns, times_[arrow.to] - times_[arrow.from]);
  arrows_.push_back(arrow);
}

void DependencyGraph::Finish() {
  first_to_.assign(times_.size() + 1, 0);
  for (const Arrow& arrow : arrows_) ++first_to_[arrow.to + 1];
  for (size_t i = 0; i < times_.size(); ++i) first_to_[i + 1] += first_to_[i];
  std::vector<uint32_t> next(first_to_.begin(), first_to_.end() - 1);
  std::vector<Arrow> sorted(arrows_.size());
  for (const Arrow& arrow : arrows_) sorted[next[arrow.to]++] = arrow;
  arrows_ = std::move(sorted);
  Order();
  for (uint32_t at = 0; at < times_.size(); ++at) {
    Arrow* binding = nullptr;
    for (size_t i = first_to_[at]; i < first_to_[at + 1]; ++i) {
      Arrow& arrow = arrows_[i];
      if (binding == nullptr ||
          times_[arrow.from] + arrow.ns > times_[binding->from] + binding->ns) {
        binding = &arrow;
      }
    }
    if (binding != nullptr) binding->ns = times_[at] - times_[binding->from];
  }
}

// Arrows never lead back in time, but moments of one time may depend on each other in a capture
// that is damaged: those come last, in order of time.
void DependencyGraph::Order() {
  std::vector<uint32_t> first_from(times_.size() + 1);
  for (const Arrow& arrow : arrows_) ++first_from[arrow.from + 1];
  for (size_t i = 0; i < times_.size(); ++i) first_from[i + 1] += first_from[i];
  std::vector<uint32_t> next(first_from.begin(), first_from.end() - 1);
  std::vector<uint32_t> targets(arrows_.size());
  for (const Arrow& arrow : arrows_) targets[next[arrow.from]++] = arrow.to;
  std::vector<uint32_t> open(times_.size());
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

std::vector<Arrow> DependencyGraph::PathTo(uint32_t moment, uint64_t from_ns) const {
  std::vector<Arrow> path;
  // No path has more arrows than there are moments, unless it goes round.
  for (size_t i = 0; i < times_.size() && times_[moment] > from_ns; ++i) {
    const std::span<const Arrow> arrows = ArrowsTo(moment);
    if (arrows.empty()) break;
    const Arrow* binding = &arrows.front();
    for (const Arrow& arrow : arrows) {
      if (times_[arrow.from] + arrow.ns > times_[binding->from] + binding->ns) binding = &arrow;
    }
    if (binding->ns > 0) path.push_back(*binding);
    moment = binding->from;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace xpu
