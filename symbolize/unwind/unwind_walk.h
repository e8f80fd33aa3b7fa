// Walks a stack by unwind tables, in C++: in the injected library over its own thread's memory, in
// the recorder over a copy of a stack. bpf/unwind.h does the same in the kernel; tests compare
// them. Nothing of the C++ library.
#pragma once

#include <cstdint>

#include "symbolize/unwind/unwind_table.h"

namespace xpu {

struct WalkRegisters {
  uint64_t ip = 0;
  uint64_t sp = 0;
  uint64_t bp = 0;
};

// Why a walk ended. Same values as enum xpu_walk_stop (bpf/events.h).
enum class WalkStop : uint8_t {
  kComplete = 0,     // at the outermost frame
  kDepth = 1,        // at the limit of frames
  kUnreadable = 2,   // memory of the stack could not be read
  kNoRule = 3,       // neither a table nor a frame pointer that leads on
  kUnsupported = 4,  // a rule of a form that tables do not hold
  kNotCode = 5,      // a return address that is in no executable mapping
  kStuck = 6,        // a frame that does not lie above the one before
  kNotWalked = 7,    // not tried: registers of another kind (32-bit), no user part
};

// How frames were found. Same values as the XPU_WALK_ bits (bpf/events.h).
inline constexpr uint8_t kWalkTables = 1 << 0;         // some by a table
inline constexpr uint8_t kWalkFramePointers = 1 << 1;  // some by a frame pointer
inline constexpr uint8_t kWalkNotReady = 1 << 2;  // some of them because no table was there yet

struct WalkResult {
  uint32_t count = 0;  // of frames
  WalkStop stop = WalkStop::kNotWalked;
  uint8_t flags = 0;
};

enum class CodeKind : uint8_t {
  kRule,      // the table's rule, which may be UnwindCfa::kNone
  kNoTable,   // executable, there is no table for it and will be none: generated code
  kNotReady,  // executable, its table is being made; or it may have been mapped just now
  kNotCode,
};

// Where a stopped task's registers lie in the ucontext of a signal frame.
inline constexpr uint64_t kUcontextRbp = 120;
inline constexpr uint64_t kUcontextRsp = 160;
inline constexpr uint64_t kUcontextRip = 168;

// Where Go keeps, while it calls C on the stack of its thread, how to find that of the goroutine.
inline constexpr uint64_t kGoSavedDepth = 40;
inline constexpr uint64_t kGoSavedG = 48;
inline constexpr uint64_t kGoStackTop = 8;  // in struct g

// In place of an rbp that was not kept: no frame pointer, nor the 0 of the outermost frame.
inline constexpr uint64_t kUnknownFramePointer = 1;

namespace walk {

// Memory: bool Read(uint64_t address, uint64_t* value).
template <typename Memory>
WalkStop FindCfa(const UnwindRule& rule, const WalkRegisters& at, uint64_t looked_up,
                 Memory& memory, uint64_t* cfa) {
  switch (rule.cfa) {
    case UnwindCfa::kRsp:
      *cfa = at.sp + static_cast<uint64_t>(int64_t{rule.cfa_offset});
      return WalkStop::kComplete;
    case UnwindCfa::kRbp:
    case UnwindCfa::kOtherStack:
      *cfa = at.bp + static_cast<uint64_t>(int64_t{rule.cfa_offset});
      return WalkStop::kComplete;
    case UnwindCfa::kAtRsp:
    case UnwindCfa::kAtRbp: {
      const uint64_t base = rule.cfa == UnwindCfa::kAtRsp ? at.sp : at.bp;
      if (!memory.Read(base + static_cast<uint64_t>(int64_t{rule.DerefOffset()}), cfa)) {
        return WalkStop::kUnreadable;
      }
      *cfa += static_cast<uint64_t>(int64_t{rule.DerefAddend()});
      return WalkStop::kComplete;
    }
    case UnwindCfa::kPlt:
      *cfa = at.sp + 8 + ((looked_up & 15) >= static_cast<uint64_t>(rule.cfa_offset) ? 8 : 0);
      return WalkStop::kComplete;
    case UnwindCfa::kGoSwitch: {
      uint64_t goroutine = 0, top = 0, depth = 0;
      if (!memory.Read(at.sp + kGoSavedDepth, &depth) ||
          !memory.Read(at.sp + kGoSavedG, &goroutine) ||
          !memory.Read(goroutine + kGoStackTop, &top)) {
        return WalkStop::kUnreadable;
      }
      *cfa = top - depth + 8;
      return WalkStop::kComplete;
    }
    default:
      return WalkStop::kUnsupported;
  }
}

// One frame outwards by `rule`, which is not kNone, kSignal or kEnd. kComplete: done. A return
// address of 0 is that of no frame: the rule does not match its code. Each frame
// lies above the one before, but the innermost may be vfork, which has taken its return address off
// the stack.
template <typename Memory>
WalkStop StepByRule(const UnwindRule& rule, uint64_t looked_up, bool innermost, Memory& memory,
                    WalkRegisters* at) {
  uint64_t cfa = 0;
  const WalkStop found = FindCfa(rule, *at, looked_up, memory, &cfa);
  if (found != WalkStop::kComplete) return found;
  if (rule.cfa < UnwindCfa::kGoSwitch && (cfa < at->sp || (cfa == at->sp && !innermost))) {
    return WalkStop::kStuck;
  }
  WalkRegisters caller{0, cfa, at->bp};
  if (!memory.Read(cfa - 8, &caller.ip)) return WalkStop::kUnreadable;
  if (caller.ip == 0) return WalkStop::kNotCode;
  if (rule.rbp == UnwindRbp::kAtCfa || rule.rbp == UnwindRbp::kAtRbp) {
    const uint64_t base = rule.rbp == UnwindRbp::kAtCfa ? cfa : at->bp;
    if (!memory.Read(base + static_cast<uint64_t>(int64_t{rule.rbp_offset}), &caller.bp)) {
      return WalkStop::kUnreadable;
    }
  } else if (rule.rbp == UnwindRbp::kUndefined) {
    caller.bp = kUnknownFramePointer;
  }
  *at = caller;
  return WalkStop::kComplete;
}

template <typename Memory>
bool StepOverSignal(Memory& memory, WalkRegisters* at) {
  WalkRegisters interrupted;
  if (!memory.Read(at->sp + kUcontextRip, &interrupted.ip) ||
      !memory.Read(at->sp + kUcontextRsp, &interrupted.sp) ||
      !memory.Read(at->sp + kUcontextRbp, &interrupted.bp)) {
    return false;
  }
  *at = interrupted;
  return true;
}

// The stack pointer at which the kernel starts a program: argc, argv, a null.
template <typename Memory>
bool IsProgramStart(uint64_t sp, Memory& memory) {
  constexpr uint64_t kMaxArguments = 1 << 20;
  uint64_t count = 0, end = 0;
  return memory.Read(sp, &count) && count > 0 && count < kMaxArguments &&
         memory.Read(sp + 8 + 8 * count, &end) && end == 0;
}

// By the frame pointer. kComplete: done; where there is no caller, ip is 0. A frame pointer of 0
// marks the outermost frame when it was saved as one (`saved`) or where a program starts; code that
// uses rbp for something else has a 0 there too.
template <typename Memory>
WalkStop StepByFramePointer(bool saved, Memory& memory, WalkRegisters* at) {
  if (at->bp == 0) {
    if (!saved && !IsProgramStart(at->sp, memory)) return WalkStop::kNoRule;
    at->ip = 0;
    return WalkStop::kComplete;
  }
  if (at->bp < at->sp || at->bp % 8 != 0) return WalkStop::kNoRule;
  WalkRegisters caller{0, at->bp + 16, 0};
  if (!memory.Read(at->bp, &caller.bp) || !memory.Read(at->bp + 8, &caller.ip)) {
    return WalkStop::kNoRule;
  }
  if (caller.ip == 0 && caller.bp != 0) return WalkStop::kNotCode;
  *at = caller;
  return WalkStop::kComplete;
}

}  // namespace walk

// Fills `frames`, innermost first, from the registers of an instruction (`at.ip` is its address).
// The other frames are return addresses; a frame that a signal interrupted is written one after
// its instruction, and so is a signal's trampoline, so that "the instruction before" is right for
// every frame but the first.
//   Memory: bool Read(uint64_t address, uint64_t* value)   8 bytes of the stack
//   Code:   CodeKind Find(uint64_t address, UnwindRule* rule)
template <typename Memory, typename Code>
WalkResult WalkStack(WalkRegisters at, Memory& memory, Code& code, uint64_t* frames,
                     uint32_t limit) {
  WalkResult result;
  const auto end = [&](WalkStop why) {
    result.stop = why;
    return result;
  };
  bool exact = true;   // at.ip is an instruction, else a return address
  bool saved = false;  // at.bp was found by a frame pointer
  while (true) {
    UnwindRule rule;
    const uint64_t looked_up = at.ip - (exact ? 0 : 1);
    const CodeKind kind = code.Find(looked_up, &rule);
    if (kind == CodeKind::kNotCode && result.count > 0) return end(WalkStop::kNotCode);
    if (result.count == limit) return end(WalkStop::kDepth);
    const bool by_rule = kind == CodeKind::kRule && rule.cfa != UnwindCfa::kNone;
    const bool in_trampoline = by_rule && rule.cfa == UnwindCfa::kSignal;
    frames[result.count] = at.ip + (result.count > 0 && (exact || in_trampoline) ? 1 : 0);
    ++result.count;
    exact = false;
    if (by_rule) {
      saved = false;
      result.flags |= kWalkTables;
      if (rule.cfa == UnwindCfa::kEnd) return end(WalkStop::kComplete);
      if (rule.cfa == UnwindCfa::kSignal) {
        if (!walk::StepOverSignal(memory, &at)) return end(WalkStop::kUnreadable);
        exact = true;
        continue;
      }
      const WalkStop step = walk::StepByRule(rule, looked_up, result.count == 1, memory, &at);
      if (step != WalkStop::kComplete) return end(step);
    } else {
      result.flags |= kWalkFramePointers;
      if (kind == CodeKind::kNotReady) result.flags |= kWalkNotReady;
      const WalkStop step = walk::StepByFramePointer(saved, memory, &at);
      saved = true;
      if (step != WalkStop::kComplete) return end(step);
    }
    if (at.ip == 0) return end(WalkStop::kComplete);
  }
}

}  // namespace xpu
