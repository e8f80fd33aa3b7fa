// Paths of what samples found on the CPU. Those of native stacks are built from their outermost
// frames: a caller that many stacks share is looked up once, however deep they are.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "report/analysis/call_tree.h"
#include "report/model/flat_map.h"
#include "report/model/model.h"
#include "report/stacks/stack_resolver.h"

namespace xpu {

// In the place of what CUPTI, our own library and BPF programs do in samples of the CPU.
inline constexpr std::string_view kProfilerFrame = "[profiler]";

class NativePaths {
 public:
  // All must outlive this. `keep_profiler`: its frames are shown below kProfilerFrame.
  NativePaths(const Model& model, StackResolver& resolver, FrameTable& frames, CallTree& tree,
              bool keep_profiler)
      : model_(model),
        resolver_(resolver),
        frames_(frames),
        tree_(tree),
        profiler_(frames.Intern(kProfilerFrame)),
        keep_profiler_(keep_profiler) {}

  struct Found {
    PathId path;
    bool at_any_time = true;  // the same for every time, so that it may be kept
  };
  // `stack` below `root`.
  Found Of(StackId stack, PathId root, SpaceId space, uint64_t time_ns);
  // Frames below `path`, what the profiler does as one of them.
  PathId Add(PathId path, std::span<const FrameId> innermost_first);

 private:
  // `path` itself where nothing is shown below it: the tree is full, or it is the profiler's.
  PathId Inner(PathId path, FrameId frame);
  bool IsProfiler(PathId path) const {
    return path.value < is_profiler_.size() && is_profiler_[path.value];
  }

  struct Step {
    Frame frame;
    bool exact = false;
    uint64_t key = 0;
    FlatMap<PathId>* known = nullptr;
  };

  const Model& model_;
  StackResolver& resolver_;
  const FrameTable& frames_;
  CallTree& tree_;
  const FrameId profiler_;
  const bool keep_profiler_;
  std::vector<bool> is_profiler_;  // by path: kProfilerFrame is on it
  using PlaceId = Id<struct PlaceTag, uint32_t>;
  FlatMap<PlaceId> places_;  // of a space and a root
  uint32_t place_count_ = 0;
  // By node and place, for each of: no frame is inside it, one of the kernel, of the process, of
  // both. What is inside says whether its address is an instruction or one to return to.
  std::array<FlatMap<PathId>, 4> known_;
  std::vector<Step> steps_;
};

}  // namespace xpu
