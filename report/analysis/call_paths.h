// Paths of samples and launches in a call tree: name of the thread, frames, call.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_tree.h"
#include "report/base/flat_map.h"
#include "report/model/model.h"
#include "report/stacks/mixed_stacks.h"
#include "report/stacks/stack_resolver.h"

namespace xpu {

// Paths of what samples found on the CPU. Those of native stacks are built from their outermost
// frames: a caller that many stacks share is looked up once, however deep they are.
//
// Instead of what CUPTI, our own library and BPF programs do in samples of the CPU.
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
  // Paths by node and place: where no frame is inside the node, a frame of the kernel is, one of
  // the process is, or both are. That says whether its address is an instruction or one to return
  // to.
  std::array<FlatMap<PathId>, 4> known_;
  std::vector<Step> steps_;
};

// Returns the thread that ended the wait.
Owner WakerOf(const Analysis& analysis, const OffCpuWait& wait);

// Which stacks the work of a graph's node is shown under.
enum class GraphStacks : uint8_t {
  kBoth,      // the one that launched the graph, [captured at], the one that put the node into it
  kLaunch,    // the first of them
  kCreation,  // the last of them, as if the work had been launched there
};

struct PathOptions {
  // Launches keep the frames of CUDA and of our own library, samples those of the profiler.
  bool keep_internal_frames = false;
  GraphStacks graph_stacks = GraphStacks::kBoth;
};

class CallPaths {
 public:
  CallPaths(Analysis& analysis, const PathOptions& options);

  // The kinds of events whose stacks are meant.
  struct Stacks {
    bool samples = false;
    bool others_samples = false;  // those that a filter leaves out, of processes that use a GPU
    bool launches = false;
    bool probe_hits = false;  // of probes that the user asked for
    bool off_cpu_waits = false;
    bool blocks = false;  // of allocators
  };
  // Tells the symbolizer every address of all of them, once for each kind.
  void WantAll(const Stacks& stacks);
  // The same, and looks them up in one go.
  void NameAhead(const Stacks& stacks);

  // The stack that an event was recorded with.
  template <typename Event>
  PathId Of(const Owned<Event>& event) {
    return OfStack(StackOf(event), event.owner(), FrameId{});
  }
  // The stack of a wait; the thread alone if it is known to have no frames.
  PathId OfWait(const Owned<OffCpuWait>& wait);
  // Where the thread that ended the wait was then; that thread alone if it has no stack.
  PathId OfWaker(const OffCpuWait& wait);
  // The thread alone: the times in a sum have no stacks.
  PathId OfSum(const Owned<OffCpuSum>& sum) { return OfThread(sum.owner()); }
  PathId OfThread(const Owner& owner);
  // Ends with the name of the CUDA call.
  PathId OfLaunch(const Launch& launch);
  // Takes a place in Correlation::launches; looks up each launch once.
  PathId OfLaunchAt(uint32_t place);
  // The launch of the work, or [unknown launch] when it has none; for the work of a graph's node
  // what the options say.
  PathId OfWork(const GpuWork& work);
  // Outermost first, without the thread: where the node of the work was put into its graph. Empty
  // for work of no node.
  std::vector<FrameId> CapturedAt(const GpuWork& work);

  CallTree& tree() { return tree_; }

 private:
  // The things beside its stack that a path depends on; a native stack alone and one with Python
  // differ in them.
  struct Context {
    SpaceId space;
    FrameId comm;
    FrameId call = {};  // none: a CPU sample
    bool has_python = false;
    StackEnd end = StackEnd::kUnknown;
    uint32_t epoch = 0;  // 0: at any time, else one more than StackResolver::EpochAt
    auto operator<=>(const Context&) const = default;
  };
  using ContextId = Id<struct ContextTag, uint32_t>;
  using PairId = Id<struct PairTag, uint32_t>;

  ContextId Intern(const Context& context);
  uint64_t KeyOf(const EventStack& stack, Context context);
  // `call`: what a launch calls; none: there is no call.
  PathId OfStack(const EventStack& whole, const Owner& owner, FrameId call);
  NativePaths::Found Resolve(const EventStack& shown, PathId root, SpaceId space, uint64_t time_ns,
                             FrameId call);
  bool IsOverLimit() const {
    return analysis_.resolver.work() - work_before_ > analysis_.call_trees.max_frames;
  }
  FrameId Comm(const Owner& owner);
  FrameId FrameOf(ApiNameId call);
  PathId UnknownLaunch(const Owner& owner, FrameId api);
  PathId WithCreation(PathId path, const GpuWork& work);
  PathId AddFrames(PathId path, std::span<const FrameId> innermost_first);

  Analysis& analysis_;
  const PathOptions options_;
  CallTree tree_;
  NativePaths native_;
  uint64_t work_before_;
  const FrameId left_out_;
  const FrameId unknown_;
  const FrameId unknown_launch_;
  const FrameId captured_at_;
  const FrameId before_recording_;
  FlatMap<PathId> paths_;          // of stacks that are the same at any time
  FlatMap<PathId> with_creation_;  // by the paths of launch and creation
  std::map<Context, ContextId> contexts_;
  std::optional<std::pair<Context, ContextId>> last_context_;  // most are like the one before
  FlatMap<PairId> pairs_;  // of a native stack and one of Python
  uint32_t pair_count_ = 0;
  PerTrack<FrameId> comms_;
  Stacks wanted_;  // which WantAll has seen
  std::vector<PathId> of_launches_;
  std::vector<FrameId> api_frames_;  // by the id of the call's name
};

}  // namespace xpu
