/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks a user stack by unwind tables, and by the frame pointer where there is no table.
 * symbolize/unwind/unwind_walk.h does the same walk in C++. Needs bpf_loop and bpf_find_vma, Linux
 * 5.17.
 */
#ifndef XPU_BPF_UNWIND_H
#define XPU_BPF_UNWIND_H

#include "bpf/events.h"
#include "call_sites.h"
#include "kernel_types.h"
#include "loop.h"
#include "probed_code.h"
#include "unwind_rules.h"
#include "walk.h"

#define MAX_HELPER_FRAMES 3

/*
 * Replaces an rbp that was not saved: it is not a frame pointer, nor the 0 of the outermost frame.
 */
#define UNKNOWN_FRAME_POINTER 1

#define UCONTEXT_RBP 120
#define UCONTEXT_RSP 160
#define UCONTEXT_RIP 168

/* The step functions return the reason to stop, or XPU_STOP_COMPLETE (0) to continue. */

static __always_inline __u32 step_over_signal(struct walk* walk, struct xpu_stack* stack) {
  __u64 sp = walk->sp;

  if (!read_word(walk, stack, sp + UCONTEXT_RIP, &walk->ip) ||
      !read_word(walk, stack, sp + UCONTEXT_RSP, &walk->sp) ||
      !read_word(walk, stack, sp + UCONTEXT_RBP, &walk->bp)) {
    return XPU_STOP_UNREADABLE;
  }
  walk->exact = 1;
  return XPU_STOP_COMPLETE;
}

/*
 * The registers are those of the innermost frame. In an outer frame, callee-saved registers have
 * been overwritten; hand-written code relies on its own helpers preserving the others.
 */
static __always_inline __u32 find_cfa_by_register(struct walk* walk, struct xpu_stack* stack,
                                                  const struct xpu_rule* rule, __u64* cfa) {
  __u32 number = (rule->cfa_offset >> 16) & (REGISTERS - 1);
  bool callee_saved = number == 3 || number >= 12; /* rbx, r12 to r15 */

  if (walk->count > (callee_saved ? 1 : MAX_HELPER_FRAMES)) return XPU_STOP_UNSUPPORTED;
  *cfa = stack->registers[number] + (__s16)rule->cfa_offset;
  return XPU_STOP_COMPLETE;
}

/* Offsets of struct g and of the frame in which Go calls C, on its thread's stack (asm_amd64.s). */
#define GO_STACK_TOP 8
#define GO_SAVED_DEPTH 40
#define GO_SAVED_G 48

/* The stack pointer from before the call, as Go itself finds it again: as a depth below the top. */
static __always_inline __u32 find_cfa_of_goroutine(struct walk* walk, struct xpu_stack* stack,
                                                   __u64* cfa) {
  __u64 g = 0, top = 0, depth = 0;

  if (!read_word(walk, stack, walk->sp + GO_SAVED_DEPTH, &depth) ||
      !read_word(walk, stack, walk->sp + GO_SAVED_G, &g) ||
      !read_word(walk, stack, g + GO_STACK_TOP, &top))
    return XPU_STOP_UNREADABLE;
  *cfa = top - depth + 8;
  return XPU_STOP_COMPLETE;
}

static __always_inline __u32 find_cfa(struct walk* walk, struct xpu_stack* stack,
                                      const struct xpu_rule* rule, __u64 looked_up, __u64* cfa) {
  __u64 base = walk->sp;

  switch (rule->cfa) {
    case XPU_CFA_RBP:
    case XPU_CFA_OTHER_STACK:
      base = walk->bp;
      /* fallthrough */
    case XPU_CFA_RSP:
      *cfa = base + rule->cfa_offset;
      return XPU_STOP_COMPLETE;
    case XPU_CFA_AT_RBP:
      base = walk->bp;
      /* fallthrough */
    case XPU_CFA_AT_RSP:
      if (!read_word(walk, stack, base + (__s16)rule->cfa_offset, cfa)) return XPU_STOP_UNREADABLE;
      *cfa += rule->cfa_offset >> 16;
      return XPU_STOP_COMPLETE;
    case XPU_CFA_PLT:
      *cfa = base + 8 + ((looked_up & 15) >= rule->cfa_offset ? 8 : 0);
      return XPU_STOP_COMPLETE;
    case XPU_CFA_REGISTER:
      return find_cfa_by_register(walk, stack, rule, cfa);
    case XPU_CFA_GO_SWITCH:
      return find_cfa_of_goroutine(walk, stack, cfa);
    default:
      return XPU_STOP_UNSUPPORTED;
  }
}

static __always_inline __u32 step_by_rule(struct walk* walk, struct xpu_stack* stack,
                                          const struct xpu_rule* rule, __u64 looked_up) {
  __u64 cfa = 0, base;
  __u32 stop = find_cfa(walk, stack, rule, looked_up, &cfa);

  if (stop != XPU_STOP_COMPLETE) return stop;
  /* Equal for vfork, which has removed its return address from the stack. */
  if (rule->cfa < XPU_CFA_GO_SWITCH && (cfa < walk->sp || (cfa == walk->sp && walk->count != 1)))
    return XPU_STOP_STUCK;
  base = rule->rbp == XPU_RBP_AT_CFA ? cfa : walk->bp;
  if (!read_word(walk, stack, cfa - 8, &walk->ip)) return XPU_STOP_UNREADABLE;
  if (rule->rbp == XPU_RBP_UNDEFINED) {
    walk->bp = UNKNOWN_FRAME_POINTER;
  } else if (rule->rbp != XPU_RBP_SAME &&
             !read_word(walk, stack, base + rule->rbp_offset, &walk->bp)) {
    return XPU_STOP_UNREADABLE;
  }
  walk->sp = cfa;
  return XPU_STOP_COMPLETE;
}

#define MAX_ARGUMENTS (1 << 20)

/* The stack pointer with which the kernel starts a program points to argc, argv, a null pointer. */
static __always_inline bool is_program_start(struct walk* walk, struct xpu_stack* stack) {
  const __u64 sp = walk->sp;
  __u64 count = 0, end = 1;

  return read_word(walk, stack, sp, &count) && count > 0 && count < MAX_ARGUMENTS &&
         read_word(walk, stack, sp + 8 + 8 * count, &end) && end == 0;
}

/*
 * Sets ip to 0 if there is no caller. A frame pointer of 0 marks the outermost frame if it was
 * saved as a frame pointer or where a program starts; code that uses rbp for something else can
 * have a 0 there too.
 */
static __always_inline __u32 step_by_frame_pointer(struct walk* walk, struct xpu_stack* stack) {
  __u64 bp = walk->bp;

  walk->flags |= XPU_WALK_FRAME_POINTERS;
  stack->unwound_sp = walk->sp;
  if (walk->bp == 0) {
    if (!walk->saved && !is_program_start(walk, stack)) return XPU_STOP_NO_RULE;
    walk->ip = 0;
    return XPU_STOP_COMPLETE;
  }
  if (bp < walk->sp || bp % 8 != 0) return XPU_STOP_NO_RULE;
  if (!read_word(walk, stack, bp, &walk->bp) || !read_word(walk, stack, bp + 8, &walk->ip))
    return XPU_STOP_NO_RULE;
  if (walk->ip == 0 && walk->bp != 0) return XPU_STOP_NOT_CODE;
  walk->sp = bp + 16;
  walk->saved = 1;
  return XPU_STOP_COMPLETE;
}

/*
 * Walks frame number `index`; 1 ends the walk. Frames are counted by `index`, which for the
 * verifier is any number: with a counter in `walk` it would check every value. Not static, so that
 * the verifier assumes nothing about `walk`: as part of the loop it checked all of this once for
 * each combination of flags, 35,000 instructions, which took most of the start of a recording.
 */
__attribute__((noinline)) int walk_frame(struct walk* walk, struct xpu_stack* stack, __u32 index) {
  __u64 looked_up;
  __u32 slot;
  int found;
  bool in_trampoline;

  if (!walk || !stack) return 1;
  looked_up = walk->ip - (walk->exact ? 0 : 1);
  found = find_rule(&walk->lookup, looked_up);
  slot = walk->first + index;
  if (found == FOUND_NOTHING && index > 0) {
    walk->ip = replaced_return(walk->sp - sizeof(__u64));
    looked_up = walk->ip - 1;
    if (walk->ip) found = find_rule(&walk->lookup, looked_up);
  }
  if (found == FOUND_NOTHING && index > 0) {
    walk->stop = XPU_STOP_NOT_CODE;
    return 1;
  }
  if (walk->uncalled) { /* another frame lies above it */
    walk->stop = XPU_STOP_NOT_CALLED;
    return 1;
  }
  if (index >= XPU_MAX_USER_FRAMES || slot >= XPU_MAX_FRAMES + XPU_MAX_USER_FRAMES) {
    walk->stop = XPU_STOP_DEPTH;
    return 1;
  }
  /*
   * The instruction that a signal interrupted is written like a return address, one byte further;
   * so is the trampoline.
   */
  in_trampoline = found == FOUND_RULE && walk->lookup.rule.cfa == XPU_CFA_SIGNAL;
  stack->frames[slot] = walk->ip + (index > 0 && (walk->exact || in_trampoline) ? 1 : 0);
  walk->count = index + 1;
  walk->uncalled = index > 0 && !walk->exact && !in_trampoline && is_code_of_file(walk, found) &&
                   !follows_call(walk->ip, stack->process);
  walk->exact = 0;
  if (found != FOUND_RULE) {
    if (found != FOUND_CODE || walk->lookup.last.page_count == XPU_TABLE_NOT_READY)
      walk->flags |= XPU_WALK_NOT_READY;
    walk->stop = step_by_frame_pointer(walk, stack);
  } else {
    walk->flags |= XPU_WALK_TABLES;
    walk->saved = 0;
    if (walk->lookup.rule.cfa == XPU_CFA_END) {
      walk->stop = XPU_STOP_COMPLETE;
      return 1;
    }
    if (walk->lookup.rule.cfa == XPU_CFA_SIGNAL) {
      walk->stop = step_over_signal(walk, stack);
    } else {
      walk->stop = step_by_rule(walk, stack, &walk->lookup.rule, looked_up);
    }
    /* No rule ends a stack by a 0: this one does not match its code. */
    if (walk->stop == XPU_STOP_COMPLETE && walk->ip == 0) walk->stop = XPU_STOP_NOT_CODE;
  }
  return walk->stop != XPU_STOP_COMPLETE || walk->ip == 0;
}

struct walk_loop {
  /* not in `walk`: the verifier forgets pointers in memory that is passed on */
  struct xpu_stack* stack;
  struct walk walk;
};

static long walk_one_frame(__u32 index, struct walk_loop* loop) {
  int result;

  /* After a signal; the innermost frame has left its probe already. */
  if (index > 0 && loop->walk.exact) leave_probe_page(&loop->walk);
  result = walk_frame(&loop->walk, loop->stack, index);
  if (index == 0) loop->stack->innermost_end = loop->walk.sp;
  return ends_loop(result);
}

/* The start of a walk: the registers with which the thread left user code. */
struct user_registers {
  __u64 ip;
  __u64 sp;
  __u64 bp;
  enum thread_position position;
};

/* The other registers of the innermost frame, which a few rules need. */
static __always_inline void keep_registers(const struct pt_regs* registers,
                                           struct xpu_stack* stack) {
  __u64* kept = stack->registers;

  kept[0] = registers->ax;
  kept[1] = registers->dx;
  kept[2] = registers->cx;
  kept[3] = registers->bx;
  kept[4] = registers->si;
  kept[5] = registers->di;
  kept[6] = registers->bp;
  kept[7] = registers->sp;
  kept[8] = registers->r8;
  kept[9] = registers->r9;
  kept[10] = registers->r10;
  kept[11] = registers->r11;
  kept[12] = registers->r12;
  kept[13] = registers->r13;
  kept[14] = registers->r14;
  kept[15] = registers->r15;
}

/* The program has released its memory, and the next one has not begun. */
static __always_inline bool has_no_stack(void) {
  struct task_struct* task = (void*)bpf_get_current_task();

  if (!BPF_CORE_READ(task, mm)) return true;
  return bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

/*
 * Appends the user frames after the `first` kernel frames. A separate function, because up to Linux
 * 6.12 a program and its deepest chain of calls share 512 bytes of stack.
 */
static __attribute__((noinline)) void walk_user_stack(const struct user_registers* registers,
                                                      __u32 pid, struct xpu_stack* stack,
                                                      __u32 first) {
  struct xpu_code* code = bpf_map_lookup_elem(&unwind_processes, &pid);
  struct walk_loop loop = {.stack = stack};
  struct walk* walk = &loop.walk;

  walk->ip = registers->ip;
  walk->sp = registers->sp;
  walk->bp = registers->bp;
  if (code) {
    walk->lookup.first = code->first;
    walk->lookup.count = code->count;
  }
  walk->first = first;
  walk->exact = 1;
  walk->stop = XPU_STOP_NOT_WALKED;
  stack->process = pid;
  leave_probe(walk, registers->position);
  stack->innermost_start = stack->innermost_end = walk->sp;
  if (walk->ip && read_stack(&walk->window, stack, walk->sp)) {
    bpf_loop(XPU_MAX_USER_FRAMES + 1, walk_one_frame, &loop, 0);
  } else if (has_no_stack()) {
    walk->stop = XPU_STOP_NO_STACK;
  }
  if (walk->uncalled) drop_uncalled_frame(walk, stack);
  if (walk->stop == XPU_STOP_NO_RULE || (walk->stop == XPU_STOP_NOT_CODE && walk->saved))
    find_entry_above(walk, stack);
  stack->user_frames = walk->count;
  stack->user_walk = walk->flags;
  stack->user_stop = walk->stop;
}

#endif
