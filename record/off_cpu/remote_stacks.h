// The stacks of threads that do not run, and who holds the locks that they wait for: their
// registers are known, and their memory is read from outside. BPF programs cannot do that, because
// they read the memory of the running thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "format/stack.h"
#include "record/process/process_table.h"
#include "record/unwind/stack_frames.h"
#include "record/unwind/unwind_tables.h"
#include "symbolize/unwind/unwind_walk.h"

namespace xpu {

class RemoteStacks {
 public:
  // `tables`: nullptr to walk by frame pointers. Both outlive this object.
  RemoteStacks(ProcessTable& processes, UnwindTables* tables)
      : processes_(processes), tables_(tables) {}

  struct Stack {
    std::vector<Frame> frames;  // innermost first
    StackWalk walk;
  };
  // Makes or loads tables of code that has none yet, which may take a while.
  Stack Take(uint32_t pid, const WalkRegisters& registers);
  // The thread of the process that holds the mutex at a futex, or that holds the read-write lock
  // there for writing; 0 if it does not look like either.
  // `has_own_numbers`: the process numbers its threads differently than the recorder does.
  uint32_t HolderOf(uint32_t pid, uint64_t futex, bool has_own_numbers) const;

 private:
  class Code;

  ProcessTable& processes_;
  UnwindTables* tables_;
};

}  // namespace xpu
