#include "report/tree/native_paths.h"

namespace xpu {
namespace {

// One caller of so many is kept: the others are found a few steps further out, for an eighth of the
// memory.
constexpr size_t kKeptEach = 8;

}  // namespace

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
    const StackResolver::FramesAt at = resolver_.At(step.frame, step.exact, space, time_ns);
    for (size_t frame = at.innermost_first.size(); frame-- > 0;) {
      const PathId inner = tree_.Child(path, at.innermost_first[frame]);
      if (inner == path) return {path, true};  // the tree is full: so is what would be below
      path = inner;
    }
    at_any_time = at_any_time && at.at_any_time;
    // Counted from the outermost one, so that all stacks meet at the same ones.
    const bool is_kept = (steps_.size() - i) % kKeptEach == 0;
    if (is_kept && at_any_time && !tree_.is_full()) (*step.known)[step.key] = path;
  }
  return {path, at_any_time};
}

}  // namespace xpu
