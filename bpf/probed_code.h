/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a thread is that the kernel holds at a probe, ours or another tool's, at the entry or at
 * the return of a function: registers and stack are then not those of the program's own code.
 */
#ifndef XPU_BPF_PROBED_CODE_H
#define XPU_BPF_PROBED_CODE_H

#include "kernel_types.h"
#include "walk.h"

/* More than calls of functions with return probes are nested. */
#define MAX_RETURN_PROBES 64

/*
 * The kernel's note of a call whose return is probed, by the place of its return address on the
 * stack: from `place` up to `reach` bytes above. 0: there is none. Not static: see find_rule.
 */
__attribute__((noinline)) __u64 find_return(__u64 place, __u64 reach) {
  struct task_struct* task = (void*)bpf_get_current_task();
  struct return_instance* instance = BPF_CORE_READ(task, utask, return_instances);
  int i;

  for (i = 0; i < MAX_RETURN_PROBES && instance; i++) {
    if (BPF_CORE_READ(instance, stack) - place <= reach && !BPF_CORE_READ(instance, chained))
      return (__u64)instance;
    instance = BPF_CORE_READ(instance, next);
  }
  return 0;
}

/*
 * A return probe replaces the return address of the function; this is the right one, or 0. Not
 * static: its stack is not a part of its caller's.
 */
__attribute__((noinline)) __u64 replaced_return(__u64 place) {
  struct return_instance* instance = (void*)find_return(place, 0);

  return instance ? BPF_CORE_READ(instance, orig_ret_vaddr) : 0;
}

#define MAX_INSTRUCTION_BYTES 15

/* Of code that is nothing but pops and a return: returns how many of them, -1: it is not. */
static __always_inline int pops_to_return(__u64 ip) {
  __u8 code[6] = {};
  int i, pops = 0;

  if (bpf_probe_read_user(code, sizeof(code), (void*)ip)) return -1;
  for (i = 0; i < (int)sizeof(code); i++) {
    if (code[i] == 0xc3) return pops;
    if (code[i] == 0x41) continue; /* a prefix: of r8 to r15 */
    if ((code[i] & 0xf8) != 0x58) break;
    pops++;
  }
  return -1;
}

static __always_inline bool run_to_return(struct walk* walk, int pops) {
  __u64 place = walk->sp + pops * sizeof(__u64), caller;

  if (pops < 0 || !read_user(place, &caller) || !caller) return false;
  walk->ip = caller;
  walk->sp = place + sizeof(__u64);
  return true;
}

/* Registers that the kernel's own code saves before it asks the kernel. */
#define MAX_PUSHED 3

/* Of code that did nothing but pops since a system call: how many of them, -1: it is not. */
static __always_inline int pops_since_syscall(__u64 ip) {
  __u8 code[6] = {};
  int i, pops = 0;

  if (bpf_probe_read_user(code, sizeof(code), (void*)(ip - sizeof(code)))) return -1;
  for (i = sizeof(code) - 1; i > 0; i--) {
    if (code[i] == 0x05 && code[i - 1] == 0x0f) return pops;
    if (code[i] == 0x41) continue; /* a prefix: of r8 to r15 */
    if ((code[i] & 0xf8) != 0x58) break;
    pops++;
  }
  return -1;
}

/*
 * Of code that the kernel calls in the place of a nop of five bytes, from Linux 6.18 on: it saves
 * three registers, asks the kernel, and returns. The timer may come at any instruction of the
 * return; on some processors most samples are at its last pop.
 */
static __always_inline bool leave_called_probe(struct walk* walk) {
  int done = pops_since_syscall(walk->ip);
  int left = done < 0 ? -1 : pops_to_return(walk->ip);

  if (left < 0 || done + left != MAX_PUSHED) return false;
  return run_to_return(walk, left);
}

/*
 * Of a thread whose ip is in what the kernel adds to a program for its probes, now or when a signal
 * came. In one page of it the instruction that a breakpoint replaced is run, and functions whose
 * return is probed return to there. False: it is not. Not static: see find_rule.
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
  /* Without one: the kernel has forgotten the call, and told where it returns to. */
  if (!instance) return run_to_return(walk, pops_to_return(walk->ip));
  walk->ip = BPF_CORE_READ(instance, orig_ret_vaddr);
  walk->sp = BPF_CORE_READ(instance, stack) + sizeof(__u64);
  return true;
}

#define BREAKPOINT 0xcc /* int3 */

/* pt_regs begins with the 15 that may be pushed. */
#define GENERAL_REGISTERS 15

/*
 * A push that a probe replaced the kernel does itself, and counts ip up last. Whether the word at
 * sp is what was pushed, and not the return address yet.
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

/* Whether the instruction between two places with these rules is a push. */
static __always_inline bool is_push(const struct xpu_rule* before, const struct xpu_rule* behind) {
  return before->cfa == XPU_CFA_RSP && behind->cfa == XPU_CFA_RSP &&
         behind->cfa_offset == before->cfa_offset + (__s32)sizeof(__u64);
}

static __always_inline bool is_push_of(struct walk* walk, const struct xpu_rule* rule, int bytes) {
  return find_rule(&walk->lookup, walk->ip + bytes) == FOUND_RULE &&
         is_push(rule, &walk->lookup.rule);
}

/* At a breakpoint that the kernel is done with but for counting ip up. */
static __always_inline void take_back_push(struct walk* walk) {
  struct xpu_rule rule;

  if (find_rule(&walk->lookup, walk->ip) != FOUND_RULE) return;
  rule = walk->lookup.rule;
  /* Of r8 to r15 it has two bytes. */
  if ((is_push_of(walk, &rule, 1) || is_push_of(walk, &rule, 2)) && has_pushed(walk))
    walk->sp += sizeof(__u64);
}

/*
 * Of a thread in the kernel, which may have come by a breakpoint. Until the kernel has found whose
 * that is, ip is one byte behind, where the instruction seems to be done that is still to come.
 * That byte may also be the end of an instruction before: but that such a one changes the rule as
 * well, that is rare enough.
 */
static __always_inline void step_back_to_probe(struct walk* walk) {
  struct xpu_rule behind = {};
  __u8 code[2] = {};

  if (bpf_probe_read_user(code, sizeof(code), (void*)(walk->ip - 1))) return;
  if (code[1] == BREAKPOINT) {
    take_back_push(walk);
    return;
  }
  if (code[0] != BREAKPOINT) return;
  if (find_rule(&walk->lookup, walk->ip) == FOUND_RULE) behind = walk->lookup.rule;
  if (find_rule(&walk->lookup, walk->ip - 1) != FOUND_RULE) return;
  if (walk->lookup.rule.cfa == behind.cfa && walk->lookup.rule.cfa_offset == behind.cfa_offset)
    return;
  if (!is_push(&walk->lookup.rule, &behind) || !has_pushed(walk)) walk->ip--;
}

enum thread_place {
  IN_USER_CODE,
  IN_KERNEL,
  AT_PROBE, /* whose program runs: the kernel has made the registers those of the program's code */
};

/* Before the walk: it begins in the program's own code then. Not static: see find_rule. */
__attribute__((noinline)) int leave_probe(struct walk* walk, enum thread_place place) {
  if (!walk || place == AT_PROBE || leave_probe_page(walk)) return 0;
  if (place == IN_KERNEL) step_back_to_probe(walk);
  return 0;
}

#endif
