// Ids of interned things, and stacks of frames.
#pragma once

#include <cstdint>

#include "format/base/ids.h"

namespace xpu {

using StringId = Id<struct StringTag, uint32_t>;  // interned text or bytes
using StackId = Id<struct StackTag, uint32_t>;    // a node of the stack trie: its path is the stack
using InstanceId = Id<struct InstanceTag, uint64_t>;

// What an id reads as whose definition was in a damaged block. Never defined, so no other text or
// stack is taken for it.
inline constexpr StringId kLostString{1};
inline constexpr StackId kLostStack{1};

// Values are stored in the file: add, never renumber.
enum class FrameKind : uint8_t {
  kUser = 0,    // address in the process that the event belongs to, at the event's time
  kKernel = 1,  // address in the recorded kernel
  kPython = 2,  // of a Python stack: PythonFrame's bits
};

struct Frame {
  FrameKind kind = FrameKind::kUser;
  uint64_t address =
      0;  // as sampled: an instruction for the innermost frame, else a return address (of a
          // frame that a signal interrupted: one after its instruction)
  friend bool operator==(const Frame&, const Frame&) = default;
};

// One node of the trie; a stack is the path from its node to the root, innermost frame first.
struct StackNode {
  StackId caller;  // 0: this is the outermost frame
  Frame frame;
};

// A frame of the interpreter, as the address of a Frame of kind kPython.
struct PythonFrame {
  uint32_t code = 0;  // PythonCode::code; 0: frames are missing here, `offset` is a PythonGap
  // The interpreter's loop was entered anew for it: it lies on a native frame of its own.
  bool is_entry = false;
  // True of the innermost frame of a stack if that native frame is the innermost of the program.
  bool is_on_top = false;
  uint32_t offset = 0;  // of the instruction that runs, in bytes from the code's first one

  static constexpr uint32_t kMaxOffset = (uint32_t{1} << 30) - 1;

  constexpr uint64_t Bits() const {
    return uint64_t{code} << 32 | uint64_t{is_entry} << 31 | uint64_t{is_on_top} << 30 |
           (offset & kMaxOffset);
  }
  static constexpr PythonFrame OfBits(uint64_t bits) {
    return {.code = static_cast<uint32_t>(bits >> 32),
            .is_entry = (bits >> 31 & 1) != 0,
            .is_on_top = (bits >> 30 & 1) != 0,
            .offset = static_cast<uint32_t>(bits) & kMaxOffset};
  }
};

// The meaning of a frame without code, at which most stacks end. Values are stored in the file.
enum class PythonGap : uint32_t {
  kUnknown = 0,
  kDepth = 1,        // deeper than a limit of ours
  kUnreadable = 2,   // memory of the interpreter could not be read
  kCodeMissing = 3,  // the frame is there, the name of its code is not: frames go on after it
  kNoFunction = 4,   // a loop that runs none now: frames go on after it
};

// How a stack was taken. Bits of `stack_flags`.
inline constexpr uint8_t kStackFramePointers = 1 << 0;  // user frames found by frame pointers
inline constexpr uint8_t kStackTruncated = 1 << 1;      // the walk ended at a limit of ours
inline constexpr uint8_t kStackUserFailed = 1 << 2;     // no user frames could be read
inline constexpr uint8_t kStackKernelFailed = 1 << 3;   // no kernel frames although in the kernel
inline constexpr uint8_t kStackTables = 1 << 4;         // user frames found by unwind tables
// The user frames reach the outermost one, or there are none: a kernel thread, or one that
// has given its memory back. Never set where the kernel's walker took them (fp).
inline constexpr uint8_t kStackComplete = 1 << 5;
// Some frame pointer was used because the table for the code was not ready.
inline constexpr uint8_t kStackTableNotReady = 1 << 6;
inline constexpr uint8_t kStackInProcess = 1 << 7;  // taken by the injected library, not the kernel

}  // namespace xpu
