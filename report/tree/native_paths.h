// Paths of native stacks, built from their outermost frames: a caller that many stacks share is
// looked up once, however deep they are.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "report/model/flat_map.h"
#include "report/model/model.h"
#include "report/stacks/stack_resolver.h"
#include "report/tree/call_tree.h"

namespace xpu {

class NativePaths {
 public:
  // All must outlive this.
  NativePaths(const Model& model, StackResolver& resolver, CallTree& tree)
      : model_(model), resolver_(resolver), tree_(tree) {}

  struct Found {
    PathId path;
    bool at_any_time = true;  // the same for every time, so that it may be kept
  };
  // `stack` below `root`.
  Found Of(StackId stack, PathId root, SpaceId space, uint64_t time_ns);

 private:
  struct Step {
    Frame frame;
    bool exact = false;
    uint64_t key = 0;
    FlatMap<PathId>* known = nullptr;
  };

  const Model& model_;
  StackResolver& resolver_;
  CallTree& tree_;
  using PlaceId = Id<struct PlaceTag, uint32_t>;
  FlatMap<PlaceId> places_;  // of a space and a root
  uint32_t place_count_ = 0;
  // By node and place, for each of: no frame is inside it, one of the kernel, of the process, of
  // both. What is inside says whether its address is an instruction or one to return to.
  std::array<FlatMap<PathId>, 4> known_;
  std::vector<Step> steps_;
};

}  // namespace xpu
