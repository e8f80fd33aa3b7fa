// The user's part of a launch stack.
//
// The stack is taken inside our own library, called by libcupti, called by libcuda, maybe called
// by libcudart: none of that is the user's. With a static libcudart its functions lie in the
// program itself, so there the outermost C function of the CUDA API ends the user's part.
#pragma once

#include <cstddef>
#include <span>

#include "report/stacks/frames.h"

namespace xpu {

// How many frames at the innermost end are not the user's. `innermost_first` may be empty.
size_t CountInternalFrames(std::span<const FrameId> innermost_first, const FrameTable& frames);

}  // namespace xpu
