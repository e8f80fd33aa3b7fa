// Frames that say how code gets from one place to the next, and not what it does: what a flame
// graph shows as one frame. The table of them all is in frame_families.cpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "report/stacks/frames.h"

namespace xpu {

enum class FrameFamily : uint8_t {
  kNone,
  kDispatcher,   // how PyTorch gets from an operator to its code, and from a module to its forward
  kInterpreter,  // the code of CPython itself
  kImport,       // what carries out an import statement
};
inline constexpr size_t kFrameFamilies = 4;
// In place of frames of one family that follow each other: "[dispatcher]".
std::string_view NameOf(FrameFamily family);

FrameFamily FrameFamilyOf(const NamedFrame& frame);

}  // namespace xpu
