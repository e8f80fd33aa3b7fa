#include "record/unwind/stack_frames.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <optional>

#include "bpf/events.h"
#include "format/base/file.h"
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
  // Without a user part, no frame is missing.
  if (walk.stop == XPU_STOP_COMPLETE || walk.stop == XPU_STOP_NO_STACK) flags |= kStackComplete;
  if (walk.stop == XPU_STOP_DEPTH) flags |= kStackTruncated;
  return flags;
}

void CountStop(StackWalk walk, LossLedger& losses, uint32_t pid, InstanceId instance) {
  const bool not_ready = (walk.flags & XPU_WALK_NOT_READY) != 0;
  if (not_ready) losses.Add(LossKind::kUnwindTableNotReady, 1, pid, instance);
  // The end of a walk through unknown code says nothing about that code.
  if (not_ready && walk.stop != XPU_STOP_DEPTH) return;
  if (const auto loss = LossOf(walk.stop)) losses.Add(*loss, 1, pid, instance);
}

void StackFrames::Take(const xpu_stack& stack, size_t bytes) {
  frames_.clear();
  flags_ = 0;
  const size_t behind_head = bytes - std::min(bytes, offsetof(xpu_stack, frames));
  const size_t present = std::min(behind_head / sizeof(stack.frames[0]), std::size(stack.frames));
  const auto kernel = std::min<size_t>(std::clamp(stack.kernel_frames, 0, XPU_MAX_FRAMES), present);
  const auto user =
      std::min<size_t>(std::clamp(stack.user_frames, 0, XPU_MAX_USER_FRAMES), present - kernel);
  for (size_t i = 0; i < kernel; ++i) frames_.push_back({FrameKind::kKernel, stack.frames[i]});
  for (size_t i = 0; i < user; ++i) {
    frames_.push_back({FrameKind::kUser, stack.frames[kernel + i]});
  }
  walk_ = {stack.user_walk, stack.user_stop};
  const bool has_none = walk_.stop == XPU_STOP_NO_STACK;
  flags_ |= user > 0 || has_none ? StackFlagsOf(walk_) : kStackUserFailed;
  const bool by_kernel = walk_.stop == XPU_STOP_NOT_WALKED;
  if (kernel >= limit_ || (by_kernel && user >= limit_)) flags_ |= kStackTruncated;
  if (stack.kernel_frames < 0 && stack.kernel_frames != -EFAULT) flags_ |= kStackKernelFailed;
}

void StackFrames::CountLosses(LossLedger& losses, uint32_t pid) const {
  if (walk_.stop != XPU_STOP_DEPTH && (flags_ & kStackTruncated)) {
    losses.Add(LossKind::kStackCut, 1, pid);
  }
  CountStop(walk_, losses, pid);
  const bool counted = walk_.stop == XPU_STOP_UNREADABLE;
  if (!counted && (flags_ & (kStackUserFailed | kStackKernelFailed))) {
    losses.Add(LossKind::kStackUnreadable, 1, pid);
  }
}

uint32_t KernelStackLimit() {
  auto text = ReadFile("/proc/sys/kernel/perf_event_max_stack");
  const int limit = text.ok() ? std::atoi(text->c_str()) : XPU_MAX_FRAMES;
  return static_cast<uint32_t>(std::clamp(limit, 1, XPU_MAX_FRAMES));
}

}  // namespace xpu
