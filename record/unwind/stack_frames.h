// A stack as the BPF programs write it (bpf/events.h), as frames of the capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bpf/events.h"
#include "format/events.h"
#include "record/sink/loss_ledger.h"
#include "record/unwind/stack_walk.h"

namespace xpu {

class StackFrames {
 public:
  // `limit`: the most frames that the kernel's own walker gives of one kind.
  explicit StackFrames(uint32_t limit) : limit_(limit) {}

  // Takes apart `stack`, of which `bytes` are there. Frames are innermost first: the
  // kernel's, then the program's.
  void Take(const xpu_stack& stack, size_t bytes);

  std::span<const Frame> frames() const { return frames_; }
  uint8_t flags() const { return flags_; }

  // Counts what flags() tells.
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
