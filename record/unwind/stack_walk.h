// What a walk of user frames tells of itself, as the capture says it: the same for the walk in the
// kernel (bpf/events.h), in the program and over a copy (symbolize/unwind/unwind_walk.h).
#pragma once

#include <cstdint>

#include "format/stack.h"
#include "record/sink/loss_ledger.h"

namespace xpu {

struct StackWalk {
  uint32_t flags = 0;  // XPU_WALK_ bits
  uint32_t stop = 0;   // enum xpu_walk_stop
};

// Bits of `stack_flags` that say how the frames were found and where the walk ended.
uint8_t StackFlagsOf(StackWalk walk);

// Counts why a stack is not whole. Nothing for one that is, nor for one that was not walked by us.
void CountStop(StackWalk walk, LossLedger& losses, uint32_t pid, InstanceId instance = {});

}  // namespace xpu
