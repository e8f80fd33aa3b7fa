// The stack of an event as it is shown: native frames, Python functions, or both merged.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "report/base/flat_map.h"
#include "report/stacks/frames.h"
#include "report/stacks/python_frames.h"
#include "report/stacks/stack_resolver.h"

namespace xpu {

// Whether the native stack has its outermost frame.
enum class StackEnd : uint8_t { kUnknown, kWhole, kCut };

struct MergedStack {
  std::vector<FrameId> frames;  // innermost first
  // There are other numbers of loops and groups, and nothing explains it: native frames may stand
  // at another function than the one that called them.
  bool is_doubtful = false;
};

// Puts Python functions instead of the native frames that run them.
//
// The interpreter's loop has a native frame for each time that it is entered, and runs a group of
// Python functions there: those that call each other without leaving it. So the n-th frame of the
// loop runs the n-th group if both stacks are complete. What lies between the loops and is
// the interpreter's own is left out: how it gets from one function to the next. So is what starts
// it. Native code of extensions stays, and so does what the innermost function has called.
//
// `native` innermost first; `cut` stands for functions that are not known.
MergedStack MergePython(std::span<const FrameId> native, StackEnd end, const PythonStack& python,
                        FrameId cut, const FrameTable& frames);

// How Python code is shown.
enum class PythonView : uint8_t {
  kMerge,   // functions instead of the interpreter's frames
  kOnly,    // functions alone
  kNative,  // the interpreter's frames
};

// The stacks of an event.
struct EventStack {
  StackId native;
  StackId python;
  StackEnd end = StackEnd::kUnknown;  // of `native`; counts where there are both
  bool operator==(const EventStack& other) const = default;
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
  MixedStacks(const Model& model, const SourceParts& sources, StackResolver& native,
              FrameTable& frames, FramePlaces places, PythonView view);

  // Reduces the stack to what matters here: equal results are resolved to the same frames.
  EventStack Shown(EventStack stack) const;
  ResolvedStack Resolve(const EventStack& shown, SpaceId space, uint64_t time_ns);
  // Different stacks whose frames of the interpreter are not as many as they should be.
  uint64_t doubtful() const { return doubtful_count_; }

 private:
  using SeenId = Id<struct SeenTag, uint8_t>;
  struct Key {
    EventStack stack;
    SpaceId space;
    bool operator==(const Key& other) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  ResolvedStack Merge(const EventStack& shown, SpaceId space, uint64_t time_ns);

  StackResolver& native_;
  PythonFrames python_;
  const FrameTable& frames_;
  const PythonView view_;
  const FrameId no_python_;
  FlatMap<SeenId> doubtful_;  // by native and Python stack
  uint64_t doubtful_count_ = 0;
  // Stacks that are the same at any time: a report asks for each in several trees.
  std::unordered_map<Key, std::vector<FrameId>, KeyHash> known_;
  size_t known_frames_ = 0;
};

}  // namespace xpu
