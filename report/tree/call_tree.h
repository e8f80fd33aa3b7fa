// Pass 8: time added up over call paths. CPU time and GPU time share one tree.
#pragma once

#include <cstdint>
#include <vector>

#include "format/base/ids.h"
#include "report/model/flat_map.h"
#include "report/stacks/frames.h"

namespace xpu {

using PathId = Id<struct PathTag, uint32_t>;

// Of all trees of a report.
struct CallTreeLimit {
  // Each takes some 60 bytes with its index. Only a capture that was made to have more has more.
  size_t max_nodes = size_t{1} << 24;
  uint64_t frames_left_out = 0;  // times that a tree was too full for one
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

  // As if everything had been added so many times.
  void Multiply(uint64_t times);

  // Parents come before their children.
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& operator[](PathId id) const { return nodes_[id.value - 1]; }
  // Outermost first.
  std::vector<FrameId> Path(PathId id) const;

 private:
  CallTreeLimit* limit_;
  std::vector<Node> nodes_;   // by id - 1
  FlatMap<PathId> children_;  // by parent and frame
};

// Saturates: a damaged capture must not turn the largest sum into a small one.
uint64_t AddSaturated(uint64_t a, uint64_t b);
uint64_t MultiplySaturated(uint64_t a, uint64_t b);

}  // namespace xpu
