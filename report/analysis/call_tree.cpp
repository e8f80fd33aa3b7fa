#include "report/analysis/call_tree.h"

#include "format/base/saturated.h"

namespace xpu {

PathId CallTree::Child(PathId parent, FrameId frame) {
  const uint64_t key = uint64_t{parent.value} << 32 | frame.value;
  if (nodes_.size() >= limit_->max_nodes) {
    if (const PathId known = children_.Get(key)) return known;
    ++limit_->frames_left_out;
    return parent ? parent : PathId{1};
  }
  PathId& child = children_[key];
  if (!child) {
    nodes_.push_back({.parent = parent, .frame = frame});
    child = PathId{static_cast<uint32_t>(nodes_.size())};
  }
  return child;
}

void CallTree::Add(PathId path, uint64_t ns, uint64_t count) {
  Node& node = nodes_.at(path.value - 1);
  node.self_ns = AddSaturated(node.self_ns, ns);
  node.self_count += count;
}

PathId CallTree::Graft(PathId prefix, PathId path, FlatMap<PathId>& known) {
  const auto key_of = [&](PathId of) { return uint64_t{prefix.value} << 32 | of.value; };
  std::vector<PathId> rest;
  PathId moved = prefix;
  for (; path; path = (*this)[path].parent) {
    if (const PathId at = known.Get(key_of(path))) {
      moved = at;
      break;
    }
    rest.push_back(path);
  }
  for (size_t i = rest.size(); i-- > 0;) {
    moved = Child(moved, (*this)[rest[i]].frame);
    if (!is_full()) known[key_of(rest[i])] = moved;
  }
  return moved;
}

void CallTree::Multiply(uint64_t times) {
  for (Node& node : nodes_) {
    node.self_ns = MultiplySaturated(node.self_ns, times);
    node.self_count = MultiplySaturated(node.self_count, times);
  }
}

std::vector<FrameId> CallTree::Path(PathId id) const {
  std::vector<FrameId> frames;
  for (; id; id = (*this)[id].parent) frames.push_back((*this)[id].frame);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

std::vector<CallTree::Total> CallTree::Totals() const {
  std::vector<Total> totals(nodes_.size());
  for (size_t i = nodes_.size(); i-- > 0;) {
    totals[i].ns = AddSaturated(totals[i].ns, nodes_[i].self_ns);
    totals[i].count = AddSaturated(totals[i].count, nodes_[i].self_count);
    if (const PathId parent = nodes_[i].parent) {
      Total& outer = totals[parent.value - 1];
      outer.ns = AddSaturated(outer.ns, totals[i].ns);
      outer.count = AddSaturated(outer.count, totals[i].count);
    }
  }
  return totals;
}

}  // namespace xpu
