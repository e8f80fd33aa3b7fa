// Converts walked stacks of user and kernel frames to frames and losses of the capture, however
// they were walked: by BPF programs (bpf/events.h), inside the program, or over a copy
// (symbolize/unwind/unwind_walk.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bpf/events.h"
#include "format/events.h"
#include "format/stack.h"
#include "record/sink/loss_ledger.h"

namespace xpu {

struct StackWalk {
  uint32_t flags = 0;  // XPU_WALK_ bits
  uint32_t stop = 0;   // enum xpu_walk_stop
};

// The bits of `stack_flags` that say how the frames were found and where the walk ended.
uint8_t StackFlagsOf(StackWalk walk);

// Counts why a stack is incomplete. Counts nothing for complete stacks, or for those that the
// kernel walked.
void CountStop(StackWalk walk, LossLedger& losses, uint32_t pid, InstanceId instance = {});

class StackFrames {
 public:
  // `limit`: the most frames of one kind that the kernel's own walker returns.
  explicit StackFrames(uint32_t limit) : limit_(limit) {}

  // Parses `stack`, of which `bytes` were received. Frames are innermost first, kernel frames
  // before user frames.
  void Take(const xpu_stack& stack, size_t bytes);

  std::span<const Frame> frames() const { return frames_; }
  uint8_t flags() const { return flags_; }

  // Counts what flags() shows.
  void CountLosses(LossLedger& losses, uint32_t pid) const;

 private:
  uint32_t limit_;
  std::vector<Frame> frames_;
  StackWalk walk_;
  uint8_t flags_ = 0;
};

// kernel.perf_event_max_stack, at most XPU_MAX_FRAMES.
uint32_t KernelStackLimit();

}  // namespace xpu
