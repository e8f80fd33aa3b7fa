// The stack of an event as it is shown: native frames, Python functions, or both merged.
#pragma once

#include <cstdint>

#include "report/model/flat_map.h"
#include "report/stacks/python_frames.h"
#include "report/stacks/python_merge.h"
#include "report/stacks/stack_resolver.h"

namespace xpu {

// How Python code is shown.
enum class PythonView : uint8_t {
  kMerge,   // functions in the place of the interpreter's frames
  kOnly,    // functions alone
  kNative,  // the interpreter's frames
};

// What an event has of stacks.
struct EventStack {
  StackId native;
  StackId python;
  StackEnd end = StackEnd::kUnknown;  // of `native`; counts where there are both
};
template <typename Event>
EventStack StackOf(const Event& event) {
  StackEnd end = StackEnd::kUnknown;
  if ((event.stack_flags & kStackComplete) != 0) end = StackEnd::kWhole;
  if ((event.stack_flags & (kStackTruncated | kStackUserFailed)) != 0) end = StackEnd::kCut;
  return {event.stack, event.python_stack, event.python_stack ? end : StackEnd::kUnknown};
}

class MixedStacks {
 public:
  // All must outlive this.
  MixedStacks(const Model& model, StackResolver& native, FrameTable& frames, FramePlaces places,
              PythonView view);

  // What of the stack matters here: those with the same are resolved to the same.
  EventStack Shown(EventStack stack) const;
  ResolvedStack Resolve(const EventStack& shown, SpaceId space, uint64_t time_ns);
  // Different stacks whose frames of the interpreter are not as many as they should be.
  uint64_t doubtful() const { return doubtful_count_; }

 private:
  using SeenId = Id<struct SeenTag, uint8_t>;

  StackResolver& native_;
  PythonFrames python_;
  const FrameTable& frames_;
  const PythonView view_;
  const FrameId no_python_;
  FlatMap<SeenId> doubtful_;  // by native and Python stack
  uint64_t doubtful_count_ = 0;
};

}  // namespace xpu
