#include "report/tree/call_tree.h"

#include <algorithm>
#include <limits>

namespace xpu {

uint64_t AddSaturated(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<uint64_t>::max() : sum;
}

uint64_t MultiplySaturated(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<uint64_t>::max() : product;
}

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

}  // namespace xpu
