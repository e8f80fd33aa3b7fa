#include "record/unwind/stack_frames.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iterator>

#include "format/base/file.h"

namespace xpu {

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
