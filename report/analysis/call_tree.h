// Time added up over call paths. CPU time and GPU time share one tree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "format/base/ids.h"
#include "report/base/flat_map.h"
#include "report/stacks/frames.h"

namespace xpu {

using PathId = Id<struct PathTag, uint32_t>;

// The limits of all trees of a report. Only a capture that was made to need more needs more:
// recordings have 0.1 paths for each byte of their file, small ones of whole machines 1.2 with all
// options that add frames. A path takes 17 bytes of a page, which may be fifty times the capture's
// size.
struct CallTreeLimit {
  CallTreeLimit() = default;
  explicit CallTreeLimit(uint64_t file_bytes)
      : max_nodes(std::min(kMostNodes, kFreeNodes + kNodesPerFileByte * file_bytes)),
        max_frames(kFreeFrames + kFramesPerFileByte * file_bytes) {}

  // The most nodes of a tree. Each takes some 60 bytes with its index.
  static constexpr uint64_t kMostNodes = uint64_t{1} << 24;
  static constexpr uint64_t kFreeNodes = uint64_t{1} << 18;
  static constexpr uint64_t kNodesPerFileByte = 2;
  uint64_t max_nodes = kMostNodes;
  // Looked up for the stacks of a tree, the mappings on the way to them included; some 60 bytes
  // each. Callers that stacks share count once.
  static constexpr uint64_t kFreeFrames = uint64_t{1} << 21;
  static constexpr uint64_t kFramesPerFileByte = 4;
  uint64_t max_frames = kFreeFrames;

  uint64_t frames_left_out = 0;  // times that a tree was too full for one
  uint64_t stacks_left_out = 0;  // times that a stack was not looked up
};

class CallTree {
 public:
  struct Node {
    PathId parent;  // none: outermost
    FrameId frame;
    uint64_t self_ns = 0;  // of this very path, without the paths below it
    uint64_t self_count = 0;
  };

  // Counts in `limit`, which outlives it.
  explicit CallTree(CallTreeLimit& limit) : limit_(&limit) {}

  // In a full tree the parent's own path, or the first one: no time is lost.
  PathId Child(PathId parent, FrameId frame);
  void Add(PathId path, uint64_t ns, uint64_t count = 1);
  // The frames of `path` below `prefix`. `known`: those of earlier calls, by prefix and path.
  PathId Graft(PathId prefix, PathId path, FlatMap<PathId>& known);
  // No new node has a place any more.
  bool is_full() const { return nodes_.size() >= limit_->max_nodes; }

  // How many kernels with samples have several call paths, so that times of their lines are
  // estimates.
  uint64_t kernels_by_estimate = 0;

  // Changes the tree as if everything had been added so many times.
  void Multiply(uint64_t times);

  // Parents come before their children.
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& operator[](PathId id) const { return nodes_[id.value - 1]; }
  // Outermost first.
  std::vector<FrameId> Path(PathId id) const;

  struct Total {
    uint64_t ns = 0;
    uint64_t count = 0;
  };
  // Sums each path with the paths below it, by id - 1.
  std::vector<Total> Totals() const;
  // Calls enter(id) and leave(id) for each path, those below it between the two.
  template <typename Enter, typename Leave>
  void Walk(Enter&& enter, Leave&& leave) const;
  // Calls visit(id) for each path whose frame is nowhere above it: where a function called itself,
  // its time is in that of the outermost one. Of names of threads it does not look at any.
  // `frames`: how many there are.
  template <typename Visit>
  void WalkOutermost(size_t frames, Visit&& visit) const;

 private:
  CallTreeLimit* limit_;
  std::vector<Node> nodes_;   // by id - 1
  FlatMap<PathId> children_;  // by parent and frame
};

template <typename Enter, typename Leave>
void CallTree::Walk(Enter&& enter, Leave&& leave) const {
  // Each the next one with the same parent, the last one that was added first.
  std::vector<PathId> next(nodes_.size());
  std::vector<PathId> child(nodes_.size() + 1);  // by parent
  for (uint32_t id = static_cast<uint32_t>(nodes_.size()); id > 0; --id) {
    PathId& first = child[nodes_[id - 1].parent.value];
    next[id - 1] = first;
    first = PathId{id};
  }
  PathId at = child[0];
  while (at) {
    enter(at);
    if (child[at.value]) {
      at = child[at.value];
      continue;
    }
    leave(at);
    while (at && !next[at.value - 1]) {
      at = nodes_[at.value - 1].parent;
      if (at) leave(at);
    }
    if (at) at = next[at.value - 1];
  }
}

template <typename Visit>
void CallTree::WalkOutermost(size_t frames, Visit&& visit) const {
  std::vector<uint32_t> open(frames + 1);  // by frame: how often it is on the path
  Walk(
      [&](PathId path) {
        const Node& node = (*this)[path];
        if (node.parent && open[node.frame.value]++ == 0) visit(path);
      },
      [&](PathId path) {
        const Node& node = (*this)[path];
        if (node.parent) --open[node.frame.value];
      });
}

}  // namespace xpu
