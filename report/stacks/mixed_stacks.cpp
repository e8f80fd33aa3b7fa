#include "report/stacks/mixed_stacks.h"

#include <utility>

namespace xpu {

MixedStacks::MixedStacks(const Model& model, StackResolver& native, FrameTable& frames,
                         FramePlaces places, PythonView view)
    : native_(native),
      python_(model, frames, places),
      frames_(frames),
      view_(view),
      no_python_(frames.Intern("[native]")) {}

EventStack MixedStacks::Shown(EventStack stack) const {
  switch (view_) {
    case PythonView::kMerge:
      break;
    case PythonView::kOnly:
      return {.native = {}, .python = stack.python};
    case PythonView::kNative:
      return {.native = stack.native, .python = {}};
  }
  return stack;
}

ResolvedStack MixedStacks::Resolve(const EventStack& shown, SpaceId space, uint64_t time_ns) {
  if (!shown.python) {
    if (view_ == PythonView::kOnly) return {.frames = {no_python_}};
    return native_.Resolve(shown.native, space, time_ns);
  }
  ResolvedStack resolved = native_.Resolve(shown.native, space, time_ns);
  const PythonStack python = python_.Resolve(shown.python);
  native_.CountFrames(python.walked);
  MergedStack merged = MergePython(resolved.frames, shown.end, python, python_.cut(), frames_);
  resolved.frames = std::move(merged.frames);
  if (merged.is_doubtful) {
    SeenId& seen = doubtful_[uint64_t{shown.native.value} << 32 | shown.python.value];
    if (!seen) ++doubtful_count_;
    seen = SeenId{1};
  }
  return resolved;
}

}  // namespace xpu
