/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a program runs in an interrupt. The kernel's counter of interrupts is a variable of a CPU
 * that programs can read only if the kernel lists its data symbols, which some do not. So the stack
 * decides: interrupts run on a stack of their CPU, or, if they hit user code, on the empty one of
 * the thread, which then is in no system call. So do page faults, which the outermost return
 * address distinguishes.
 */
#ifndef XPU_BPF_INTERRUPTS_H
#define XPU_BPF_INTERRUPTS_H

#include "kernel_types.h"

struct pt_regs___call {
  unsigned long orig_ax;
} __attribute__((preserve_access_index));

/* The number of the system call of a task; -1 for page faults and interrupts. */
static __always_inline __s32 system_call_of(struct task_struct* task) {
  struct pt_regs___call* entry = (void*)bpf_task_pt_regs(task);

  return BPF_CORE_READ(entry, orig_ax);
}

/* Set by the recorder before loading: the code that page faults enter. 0: not known. */
const volatile __u64 page_fault_entry = 0;
const volatile __u64 page_fault_entry_end = 0;

/* Whether a thread that is in no system call has entered the kernel by a page fault. */
static __always_inline bool is_in_page_fault(struct task_struct* task) {
  const __u64* entry = (void*)bpf_task_pt_regs(task); /* above all frames */
  __u64 caller = 0;

  bpf_probe_read_kernel(&caller, sizeof(caller), entry - 1);
  return caller > page_fault_entry && caller < page_fault_entry_end;
}

/* `ctx` lies on the stack on which the tracepoint was hit. For tracepoints only. */
static __always_inline bool is_in_interrupt(const void* ctx) {
  struct task_struct* task = bpf_get_current_task_btf();
  const __u64 low = (__u64)BPF_CORE_READ(task, stack);
  const __u64 high = (__u64)bpf_task_pt_regs(task);

  if ((__u64)ctx < low || (__u64)ctx > high) return true;
  return BPF_CORE_READ(task, mm) && system_call_of(task) < 0 && !is_in_page_fault(task);
}

#endif
