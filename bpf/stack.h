/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stack of the running thread. Included once per program file. */
#ifndef XPU_BPF_STACK_H
#define XPU_BPF_STACK_H

#include "bpf/events.h"
#include "kernel_types.h"
#include "python.h"
#include "unwind.h"

static __always_inline __u64 take_kernel_frames(void* ctx, struct xpu_stack* stack) {
  const __u64 limit = XPU_MAX_FRAMES * sizeof(__u64);
  long result = bpf_get_stack(ctx, stack->frames, limit, 0);

  stack->kernel_frames = result;
  if (result <= 0) return 0;
  stack->kernel_frames = result / sizeof(__u64);
  return result;
}

static __always_inline void walk_by_frame_pointers(void* ctx, struct xpu_stack* stack,
                                                   __u64 kernel_bytes) {
  const __u64 limit = XPU_MAX_FRAMES * sizeof(__u64);
  long result = bpf_get_stack(ctx, (void*)stack->frames + kernel_bytes, limit, BPF_F_USER_STACK);

  stack->user_frames = result > 0 ? result / sizeof(__u64) : result;
  stack->user_walk = XPU_WALK_FRAME_POINTERS;
  stack->user_stop = XPU_STOP_NOT_WALKED;
  stack->innermost_end = 0;
}

/*
 * Kernel addresses have the highest bit set. The size of cs depends on the kernel, so it is not
 * used.
 */
static __always_inline bool is_kernel_address(__u64 address) { return (__s64)address < 0; }

/*
 * For a thread in the kernel: the registers at its entry. Interrupts keep all of them, and system
 * calls those that the instruction itself does not change.
 */
static __always_inline void take_entry_registers(struct user_registers* registers,
                                                 struct xpu_stack* stack) {
  const struct pt_regs* entry = (void*)bpf_task_pt_regs(bpf_get_current_task_btf());

  registers->ip = entry->ip;
  registers->sp = entry->sp;
  registers->bp = entry->bp;
  registers->position = IN_KERNEL;
  keep_registers(entry, stack);
  /* Against one copy of the loads for these registers and those of a context: it is rejected. */
  asm volatile("" ::: "memory");
}

/*
 * Fills `stack` and returns its size: the frames lie without gaps, kernel frames first, so that an
 * event is only as long as its stack. `with_kernel` is a constant; `registers` are those with which
 * the thread left user code.
 */
static __always_inline __u32 take_stack(void* ctx, const struct user_registers* registers,
                                        struct identity who, struct xpu_stack* stack,
                                        int with_kernel) {
  const __u64 limit = XPU_MAX_FRAMES * sizeof(__u64);
  __u64 kernel_bytes = 0;
  __s32 user_frames;
  __u32 first, words;

  stack->kernel_frames = 0;
  if (with_kernel) kernel_bytes = take_kernel_frames(ctx, stack);
  if (kernel_bytes > limit) /* impossible; for the verifier */
    return 0;
  if (walk_by_tables) {
    walk_user_stack(registers, who.pid, stack, kernel_bytes / sizeof(__u64));
  } else {
    walk_by_frame_pointers(ctx, stack, kernel_bytes);
  }
  user_frames = stack->user_frames;
  if (user_frames < 0) user_frames = 0;
  if (user_frames > XPU_MAX_USER_FRAMES) return 0;
  first = kernel_bytes / sizeof(__u64) + user_frames;
  stack->python_frames = 0;
  stack->python_stop = XPU_PYTHON_COMPLETE;
  stack->python_on_top = 0;
  walk_python_stack(who.pid, who.tid, stack, first);
  words = first + stack->python_frames * 2;
  if (words > XPU_STACK_WORDS) return 0;
  return __builtin_offsetof(struct xpu_stack, frames) + words * sizeof(__u64);
}

#endif
