// Puts Python functions in the place of the native frames that run them.
//
// The interpreter's loop has a native frame for each time that it is entered, and runs a group of
// Python functions there: those that call each other without leaving it. So the n-th frame of the
// loop stands for the n-th group, when both stacks are whole. What lies between the loops and is
// the interpreter's own is left out: how it gets from one function to the next. So is what starts
// it. Native code of extensions stays, and so does what the innermost function has called.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "report/stacks/frames.h"
#include "report/stacks/python_frames.h"

namespace xpu {

// Whether the native stack has its outermost frame.
enum class StackEnd : uint8_t { kUnknown, kWhole, kCut };

struct MergedStack {
  std::vector<FrameId> frames;  // innermost first
  // There are other numbers of loops and groups, and nothing explains it: native frames may stand
  // at another function than the one that called them.
  bool is_doubtful = false;
};

// `native` innermost first; `cut` stands for functions that are not known.
MergedStack MergePython(std::span<const FrameId> native, StackEnd end, const PythonStack& python,
                        FrameId cut, const FrameTable& frames);

}  // namespace xpu
