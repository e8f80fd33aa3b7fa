#include "record/unwind/stack_walk.h"

#include <optional>

#include "bpf/events.h"
#include "symbolize/unwind/unwind_walk.h"

namespace xpu {
namespace {

static_assert(kWalkTables == XPU_WALK_TABLES && kWalkFramePointers == XPU_WALK_FRAME_POINTERS &&
              kWalkNotReady == XPU_WALK_NOT_READY);
static_assert(static_cast<int>(WalkStop::kNotWalked) == XPU_STOP_NOT_WALKED);

std::optional<LossKind> LossOf(uint32_t stop) {
  switch (stop) {
    case XPU_STOP_DEPTH:
      return LossKind::kStackCut;
    case XPU_STOP_UNREADABLE:
      return LossKind::kStackUnreadable;
    case XPU_STOP_NO_RULE:
      return LossKind::kStackNoRule;
    case XPU_STOP_UNSUPPORTED:
      return LossKind::kStackRuleUnsupported;
    case XPU_STOP_NOT_CODE:
      return LossKind::kStackBadReturn;
    case XPU_STOP_STUCK:
      return LossKind::kStackStuck;
    case XPU_STOP_NOT_CALLED:
      return LossKind::kStackNotCalled;
    default:
      return std::nullopt;
  }
}

}  // namespace

uint8_t StackFlagsOf(StackWalk walk) {
  uint8_t flags = 0;
  if (walk.flags & XPU_WALK_TABLES) flags |= kStackTables;
  if (walk.flags & XPU_WALK_FRAME_POINTERS) flags |= kStackFramePointers;
  if (walk.flags & XPU_WALK_NOT_READY) flags |= kStackTableNotReady;
  // Where there is no user part, none is missing.
  if (walk.stop == XPU_STOP_COMPLETE || walk.stop == XPU_STOP_NO_STACK) flags |= kStackComplete;
  if (walk.stop == XPU_STOP_DEPTH) flags |= kStackTruncated;
  return flags;
}

void CountStop(StackWalk walk, LossLedger& losses, uint32_t pid, InstanceId instance) {
  const bool not_ready = (walk.flags & XPU_WALK_NOT_READY) != 0;
  if (not_ready) losses.Add(LossKind::kUnwindTableNotReady, 1, pid, instance);
  // Where a walk through unknown code ends says nothing of that code.
  if (not_ready && walk.stop != XPU_STOP_DEPTH) return;
  if (const auto loss = LossOf(walk.stop)) losses.Add(*loss, 1, pid, instance);
}

}  // namespace xpu
