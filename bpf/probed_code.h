/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the position of a thread in its own code while the kernel holds it at a probe, at the entry
 * or the return of a function. Registers and stack are then not those of the program's code. The
 * probe may be the recorder's or another tool's.
 */
#ifndef XPU_BPF_PROBED_CODE_H
#define XPU_BPF_PROBED_CODE_H

#include "kernel_types.h"
#include "walk.h"

/* More than the nesting of calls with return probes. */
#define MAX_RETURN_PROBES 64

/*
 * The kernel's record of a call with a return probe whose return address was at `address` or up to
 * `reach` bytes above. 0 if there is none. Not static: see find_rule.
 */
__attribute__((noinline)) __u64 find_return(__u64 address, __u64 reach) {
  struct task_struct* task = (void*)bpf_get_current_task();
  struct return_instance* instance = BPF_CORE_READ(task, utask, return_instances);
  int i;

  for (i = 0; i < MAX_RETURN_PROBES && instance; i++) {
    if (BPF_CORE_READ(instance, stack) - address <= reach && !BPF_CORE_READ(instance, chained))
      return (__u64)instance;
    instance = BPF_CORE_READ(instance, next);
  }
  return 0;
}

/*
 * A return probe replaces the return address of its function. Returns the original one, or 0. Not
 * static, so that its stack frame is not part of its caller's.
 */
__attribute__((noinline)) __u64 replaced_return(__u64 address) {
  struct return_instance* instance = (void*)find_return(address, 0);

  return instance ? BPF_CORE_READ(instance, orig_ret_vaddr) : 0;
}

#define MAX_INSTRUCTION_BYTES 15

/* For code that consists of pops and a return: returns the number of pops, otherwise -1. */
static __always_inline int pops_to_return(__u64 ip) {
  __u8 code[6] = {};
  int i, pops = 0;

  if (bpf_probe_read_user(code, sizeof(code), (void*)ip)) return -1;
  for (i = 0; i < (int)sizeof(code); i++) {
    if (code[i] == 0xc3) return pops;
    if (code[i] == 0x41) continue; /* a prefix for r8 to r15 */
    if ((code[i] & 0xf8) != 0x58) break;
    pops++;
  }
  return -1;
}

static __always_inline bool run_to_return(struct walk* walk, int pops) {
  __u64 address = walk->sp + pops * sizeof(__u64), caller;

  if (pops < 0 || !read_user(address, &caller) || !caller) return false;
  walk->ip = caller;
  walk->sp = address + sizeof(__u64);
  return true;
}

/* The registers that the kernel's trampoline saves before its system call. */
#define MAX_PUSHED 3

/* For code that has executed only pops since a system call: returns their number, otherwise -1. */
static __always_inline int pops_since_syscall(__u64 ip) {
  __u8 code[6] = {};
  int i, pops = 0;

  if (bpf_probe_read_user(code, sizeof(code), (void*)(ip - sizeof(code)))) return -1;
  for (i = sizeof(code) - 1; i > 0; i--) {
    if (code[i] == 0x05 && code[i - 1] == 0x0f) return pops;
    if (code[i] == 0x41) continue; /* a prefix for r8 to r15 */
    if ((code[i] & 0xf8) != 0x58) break;
    pops++;
  }
  return -1;
}

/*
 * For the trampoline that the kernel calls instead of a nop of five bytes, from Linux 6.18 on: it
 * saves three registers, makes a system call, and returns. The timer may interrupt it at any
 * instruction of the return; on some processors most samples are at its last pop.
 */
static __always_inline bool leave_called_probe(struct walk* walk) {
  int done = pops_since_syscall(walk->ip);
  int left = done < 0 ? -1 : pops_to_return(walk->ip);

  if (left < 0 || done + left != MAX_PUSHED) return false;
  return run_to_return(walk, left);
}

/*
 * For a thread whose ip is in a page that the kernel adds to a program for its probes, now or when
 * a signal arrived. There the instruction that a breakpoint replaced is executed, and functions
 * with return probes return to there. Returns false if ip is not in it. Not static: see find_rule.
 */
__attribute__((noinline)) int leave_probe_page(struct walk* walk) {
  struct task_struct* task = (void*)bpf_get_current_task();
  struct uprobe_task* probes = BPF_CORE_READ(task, utask);
  struct return_instance* instance;
  __u64 offset;

  if (!walk || !probes) return false;
  offset = walk->ip - BPF_CORE_READ(probes, xol_vaddr);
  if (offset <= MAX_INSTRUCTION_BYTES) {
    walk->ip = BPF_CORE_READ(probes, vaddr) + offset;
    return true;
  }
  offset = walk->ip - BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
  if (offset >= USER_PAGE_BYTES) return leave_called_probe(walk);
  instance = (void*)find_return(walk->sp - sizeof(__u64), MAX_PUSHED * sizeof(__u64));
  /* Without a record, the kernel has forgotten the call and set ip to where it returns. */
  if (!instance) return run_to_return(walk, pops_to_return(walk->ip));
  walk->ip = BPF_CORE_READ(instance, orig_ret_vaddr);
  walk->sp = BPF_CORE_READ(instance, stack) + sizeof(__u64);
  return true;
}

#define BREAKPOINT 0xcc /* int3 */

/* pt_regs begins with these registers, any of which may be pushed. */
#define GENERAL_REGISTERS 15

/*
 * The kernel itself executes a push that a probe replaced, and advances ip last. Returns whether
 * the word at sp is the pushed value and not yet the return address.
 */
static __always_inline bool has_pushed(const struct walk* walk) {
  __u64* registers = (void*)bpf_task_pt_regs(bpf_get_current_task_btf());
  __u64 word = 0, value = 0;
  int i;

  if (!read_user(walk->sp, &word)) return false;
  for (i = 0; i < GENERAL_REGISTERS; i++) {
    bpf_probe_read_kernel(&value, sizeof(value), registers + i);
    if (value == word) return true;
  }
  return false;
}

/* Whether the instruction between two addresses with these rules is a push. */
static __always_inline bool is_push(const struct xpu_rule* before, const struct xpu_rule* after) {
  return before->cfa == XPU_CFA_RSP && after->cfa == XPU_CFA_RSP &&
         after->cfa_offset == before->cfa_offset + (__s32)sizeof(__u64);
}

static __always_inline bool is_push_of(struct walk* walk, const struct xpu_rule* rule, int bytes) {
  return find_rule(&walk->lookup, walk->ip + bytes) == FOUND_RULE &&
         is_push(rule, &walk->lookup.rule);
}

/* At a breakpoint that the kernel has handled except for advancing ip. */
static __always_inline void take_back_push(struct walk* walk) {
  struct xpu_rule rule;

  if (find_rule(&walk->lookup, walk->ip) != FOUND_RULE) return;
  rule = walk->lookup.rule;
  /* A push of r8 to r15 has two bytes. */
  if ((is_push_of(walk, &rule, 1) || is_push_of(walk, &rule, 2)) && has_pushed(walk))
    walk->sp += sizeof(__u64);
}

/*
 * For a thread in the kernel, which may have hit a breakpoint. Until the kernel has identified the
 * breakpoint, ip is one byte too far, as if the instruction that is still to come had run. That
 * byte may also be the end of a previous instruction, but one that changes the rule as well is rare
 * enough.
 */
static __always_inline void step_back_to_probe(struct walk* walk) {
  struct xpu_rule after = {};
  __u8 code[2] = {};

  if (bpf_probe_read_user(code, sizeof(code), (void*)(walk->ip - 1))) return;
  if (code[1] == BREAKPOINT) {
    take_back_push(walk);
    return;
  }
  if (code[0] != BREAKPOINT) return;
  if (find_rule(&walk->lookup, walk->ip) == FOUND_RULE) after = walk->lookup.rule;
  if (find_rule(&walk->lookup, walk->ip - 1) != FOUND_RULE) return;
  if (walk->lookup.rule.cfa == after.cfa && walk->lookup.rule.cfa_offset == after.cfa_offset)
    return;
  if (!is_push(&walk->lookup.rule, &after) || !has_pushed(walk)) walk->ip--;
}

enum thread_position {
  IN_USER_CODE,
  IN_KERNEL,
  /* whose program runs: the kernel has set the registers to those of the program's code */
  AT_PROBE,
};

/*
 * Called before the walk, so that it begins in the program's own code. Not static: see find_rule.
 */
__attribute__((noinline)) int leave_probe(struct walk* walk, enum thread_position position) {
  if (!walk || position == AT_PROBE || leave_probe_page(walk)) return 0;
  if (position == IN_KERNEL) step_back_to_probe(walk);
  return 0;
}

#endif
