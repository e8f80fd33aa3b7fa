/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What off_cpu.bpf.c sends to the recorder: times, with and without stacks, and sums. */
#ifndef XPU_BPF_OFF_CPU_OUTPUT_H
#define XPU_BPF_OFF_CPU_OUTPUT_H

#include "common.h"
#include "kernel_types.h"
#include "off_cpu.h"
#include "stack.h"

/* Set by the recorder. */
__u32 is_on = 0;
__u64 on_since_ns = 0;
/* When recording was switched off, until the states of all threads are closed; otherwise 0. */
__u64 off_since_ns = 0;
/* Recording does not go on, so sums are the last ones. */
__u32 is_over = 0;

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 16 << 20);
} off_cpu_events SEC(".maps");

/* Sums are few, and must not be lost with the times that fill the other ring. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4 << 20);
} off_cpu_totals SEC(".maps");

/*
 * One per CPU is enough: the programs that use them run with preemption disabled, and an interrupt
 * takes no stack.
 */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct xpu_off_cpu_wait);
} waits SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct xpu_off_cpu_wake);
} wakes SEC(".maps");

/* For the program that lists threads: it can be preempted, and runs once at a time. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct xpu_off_cpu_wait);
} open_waits SEC(".maps");

/* If the thread has not moved since recording began, its state is as old as that. */
static __always_inline __u64 begin_of_state(const struct thread* thread) {
  return thread->since_ns > on_since_ns ? thread->since_ns : on_since_ns;
}

static __always_inline bool has_state(const struct thread* thread) {
  return thread->since_ns >= on_since_ns;
}

/* Returns whether there is a time to send, and takes it from the thread. */
static __always_inline bool take_ended(struct xpu_off_cpu_wait* wait, struct thread* thread) {
  wait->end_ns = __sync_lock_test_and_set(&thread->ended.end_ns, 0);
  wait->event = XPU_OFF_CPU_WAIT;
  wait->state = thread->ended.state;
  wait->start_ns = thread->ended.start_ns;
  wait->ready_ns = thread->ended.ready_ns;
  wait->pid = thread->pid;
  wait->tid = thread->tid;
  wait->system_call = thread->ended.system_call;
  wait->file_type = thread->ended.file_type;
  wait->argument = thread->ended.argument;
  wait->is_open = thread->ended.is_open;
  wait->ip = wait->sp = wait->bp = wait->run_count = 0;
  wait->own_tid = 0;
  wait->waker = thread->waker;
  return wait->end_ns != 0;
}

#define WAIT_WITHOUT_FRAMES __builtin_offsetof(struct xpu_off_cpu_wait, stack.frames)

static __always_inline void clear_stack(struct xpu_stack* stack) {
  stack->kernel_frames = 0;
  stack->user_frames = 0;
  stack->user_walk = 0;
  stack->user_stop = XPU_STOP_NO_STACK;
  stack->python_frames = 0;
  stack->python_stop = XPU_PYTHON_COMPLETE;
  stack->python_on_top = 0;
}

static __always_inline void output_without_stack(struct thread* thread) {
  struct xpu_off_cpu_wait* wait;

  wait = bpf_ringbuf_reserve(&off_cpu_events, WAIT_WITHOUT_FRAMES, 0);
  if (!wait) {
    if (__sync_lock_test_and_set(&thread->ended.end_ns, 0)) count(XPU_OFF_CPU_DROPPED);
    return;
  }
  if (!take_ended(wait, thread)) {
    bpf_ringbuf_discard(wait, BPF_RB_NO_WAKEUP);
    return;
  }
  clear_stack(&wait->stack);
  bpf_ringbuf_submit(wait, BPF_RB_NO_WAKEUP);
}

/*
 * For a thread that still does not run, with its kernel frames. The recorder walks its user stack,
 * which is valid only if the thread has not run until then.
 */
static __always_inline void output_open(struct thread* thread, struct task_struct* task) {
  __u32 zero = 0, size = WAIT_WITHOUT_FRAMES;
  struct pt_regs* entry = (void*)bpf_task_pt_regs(task);
  struct xpu_off_cpu_wait* wait = bpf_map_lookup_elem(&open_waits, &zero);
  long bytes;

  if (!wait || !take_ended(wait, thread)) return;
  clear_stack(&wait->stack);
  if (wait->state != XPU_OFF_CPU_CREATED) {
    wait->run_count = run_count_of(task);
    wait->own_tid = own_thread_number(task);
    if (BPF_CORE_READ(task, mm)) {
      wait->ip = BPF_CORE_READ(entry, ip);
      wait->sp = BPF_CORE_READ(entry, sp);
      wait->bp = BPF_CORE_READ(entry, bp);
    }
    bytes = bpf_get_task_stack(task, wait->stack.frames, XPU_MAX_FRAMES * sizeof(__u64), 0);
    if (bytes > 0) {
      /* Otherwise the compiler tests another register, and old verifiers do not see the limits. */
      asm volatile("" : "+r"(bytes));
      if ((__u64)bytes > XPU_MAX_FRAMES * sizeof(__u64)) return;
      wait->stack.kernel_frames = (__u64)bytes / sizeof(__u64);
      size += bytes;
    }
  }
  if (bpf_ringbuf_output(&off_cpu_events, wait, size, BPF_RB_NO_WAKEUP)) count(XPU_OFF_CPU_DROPPED);
}

/*
 * Of these the kernel frames say more than the system call: what it does that cannot be
 * interrupted, and which driver.
 */
static __always_inline bool needs_kernel_frames(const struct xpu_off_cpu_wait* wait) {
  return wait->state == XPU_OFF_CPU_UNINTERRUPTIBLE || wait->system_call == SYSTEM_CALL_IOCTL;
}

/* For the running thread, which is where it was when it did not run. */
static __always_inline void output_with_stack(void* ctx, struct thread* thread) {
  __u32 zero = 0, size;
  struct user_registers registers = {};
  struct identity who;
  struct xpu_off_cpu_wait* wait = bpf_map_lookup_elem(&waits, &zero);

  if (!wait || !take_ended(wait, thread)) return;
  if (!BPF_CORE_READ(bpf_get_current_task_btf(), mm)) {
    clear_stack(&wait->stack);
    size = WAIT_WITHOUT_FRAMES + take_kernel_frames(ctx, &wait->stack);
  } else {
    who.pid = wait->pid;
    who.tid = wait->tid;
    take_entry_registers(&registers, &wait->stack);
    size = __builtin_offsetof(struct xpu_off_cpu_wait, stack) +
           take_stack(ctx, &registers, who, &wait->stack, needs_kernel_frames(wait));
  }
  if (bpf_ringbuf_output(&off_cpu_events, wait, size, BPF_RB_NO_WAKEUP)) count(XPU_OFF_CPU_DROPPED);
}

/* The sums so far; `is_final`: the last ones of the thread. */
static __always_inline void output_totals(struct thread* thread, __u64 now_ns, bool is_final) {
  struct xpu_off_cpu_totals* totals;
  __u64 times = 0;
  int i;

  totals = bpf_ringbuf_reserve(&off_cpu_totals, sizeof(*totals), 0);
  if (!totals) {
    /* Those of a thread that goes on are in its next ones. */
    if (!is_final) return;
    for (i = 0; i < XPU_OFF_CPU_STATES; i++) {
      if (i != XPU_OFF_CPU_RUNNING) times += thread->sums[i].count;
    }
    add_to_counter(XPU_OFF_CPU_UNSUMMED, times);
    return;
  }
  totals->is_final = is_final;
  totals->pid = thread->pid;
  totals->tid = thread->tid;
  totals->time_ns = now_ns;
  for (i = 0; i < XPU_OFF_CPU_STATES; i++) totals->sums[i] = thread->sums[i];
  if (!is_final && is_on && has_state(thread) && thread->state == XPU_OFF_CPU_RUNNING)
    totals->sums[XPU_OFF_CPU_RUNNING].duration_ns += now_ns - begin_of_state(thread);
  bpf_ringbuf_submit(totals, BPF_RB_NO_WAKEUP);
}

static __always_inline void output_waker(void* ctx, const struct thread* woken, __u64 now_ns) {
  __u32 zero = 0, size;
  struct user_registers registers = {};
  struct identity who = {woken->waker.pid, woken->waker.tid};
  struct xpu_off_cpu_wake* wake = bpf_map_lookup_elem(&wakes, &zero);

  if (!wake) return;
  wake->event = XPU_OFF_CPU_WAKE;
  wake->tid = woken->tid;
  wake->time_ns = now_ns;
  wake->waker_pid = who.pid;
  wake->reserved = 0;
  take_entry_registers(&registers, &wake->stack);
  size = __builtin_offsetof(struct xpu_off_cpu_wake, stack) +
         take_stack(ctx, &registers, who, &wake->stack, 0);
  if (bpf_ringbuf_output(&off_cpu_events, wake, size, BPF_RB_NO_WAKEUP))
    count(XPU_OFF_CPU_WAKERS_DROPPED);
}

#endif
