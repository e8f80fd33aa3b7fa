#include "report/stacks/launch_frames.h"

#include <algorithm>

namespace xpu {
namespace {

// A walk by frame pointers through code that has none may invent this many frames in a row.
constexpr size_t kMaxInvented = 2;

bool IsNameless(const NamedFrame& frame) {
  return frame.name == "[unknown]" || frame.name == "[anon]";
}

}  // namespace

size_t CountInternalFrames(std::span<const FrameId> innermost_first, const FrameTable& frames) {
  size_t internal = 0;
  size_t invented = 0;
  for (size_t i = 0; i < innermost_first.size() && invented <= kMaxInvented; ++i) {
    const NamedFrame& frame = frames[innermost_first[i]];
    if (frame.is_cuda_internal || frame.origin == FrameOrigin::kKernel) {
      internal = i + 1;
      invented = 0;
    } else if (IsNameless(frame)) {
      ++invented;
    } else {
      break;
    }
  }
  // Not in libcuda and its kin: they call the program back on threads of theirs, and what the
  // program does there is the user's.
  for (size_t i = innermost_first.size(); i > internal; --i) {
    const NamedFrame& frame = frames[innermost_first[i - 1]];
    if (frame.is_api_entry && !frame.is_cuda_internal) return i;
  }
  return internal;
}

}  // namespace xpu
