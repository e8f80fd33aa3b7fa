#include "report/analysis/native_paths.h"

namespace xpu {
namespace {

// One caller of so many is kept: the others are found a few steps further out, for an eighth of the
// memory.
constexpr size_t kKeptEach = 8;

}  // namespace

// The program would not do what the profiler does, nor all that it calls for that.
PathId NativePaths::Inner(PathId path, FrameId frame) {
  const auto child = [&](FrameId of, bool is_profiler) {
    const PathId inner = tree_.Child(path, of);
    if (is_profiler && inner != path) {
      if (is_profiler_.size() <= inner.value) is_profiler_.resize(inner.value + 1);
      is_profiler_[inner.value] = true;
    }
    path = inner;
  };
  if (!IsProfiler(path) && frames_[frame].is_profiler) {
    child(profiler_, true);
    if (!keep_profiler_) return path;
  } else if (IsProfiler(path) && !keep_profiler_) {
    return path;
  }
  child(frame, IsProfiler(path));
  return path;
}

PathId NativePaths::Add(PathId path, std::span<const FrameId> innermost_first) {
  for (auto frame = innermost_first.rbegin(); frame != innermost_first.rend(); ++frame) {
    const PathId inner = Inner(path, *frame);
    if (inner == path) break;
    path = inner;
  }
  return path;
}

NativePaths::Found NativePaths::Of(StackId stack, PathId root, SpaceId space, uint64_t time_ns) {
  steps_.clear();
  PlaceId& place = places_[uint64_t{space.value} << 32 | root.value];
  if (!place) place = PlaceId{++place_count_};
  PathId path = root;
  unsigned inside = 0;
  for (; stack; stack = model_.tables->Node(stack).caller) {
    if (model_.tables->IsLost(stack)) {
      path = tree_.Child(path, resolver_.lost());
      break;
    }
    const uint64_t key = uint64_t{stack.value} << 32 | place.value;
    FlatMap<PathId>& known = known_[inside];
    if (const PathId at = known.Get(key)) {
      path = at;
      break;
    }
    const Frame frame = model_.tables->Node(stack).frame;
    const unsigned kind = frame.kind == FrameKind::kKernel ? 1 : 2;
    steps_.push_back({frame, (inside & kind) == 0, key, &known});
    inside |= kind;
  }
  bool at_any_time = true;
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    if (!IsProfiler(path) || keep_profiler_) {
      const StackResolver::FramesAt at = resolver_.At(step.frame, step.exact, space, time_ns);
      at_any_time = at_any_time && at.at_any_time;
      const PathId inner = Add(path, at.innermost_first);
      if (inner == path && tree_.is_full()) return {path, true};  // so is what would be below
      path = inner;
    }
    // Counted from the outermost one, so that all stacks meet at the same ones.
    const bool is_kept = (steps_.size() - i) % kKeptEach == 0;
    if (is_kept && at_any_time && !tree_.is_full()) (*step.known)[step.key] = path;
  }
  return {path, at_any_time};
}

}  // namespace xpu
