/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long did threads not run, why, where in their code, and who woke them? Each thread has a
 * state and the time since when it is in it: a context switch ends the state of both of its
 * threads, and a wake-up notes its author. Times below `minimum_ns`, and all running time, are
 * added to the sums of the thread, which are sent when it ends.
 *
 * A longer time needs the stack of the thread, which is not readable in sched_switch: that is hit
 * on the stack and in the address space of the previous thread. The tracepoint at the end of the
 * scheduler (sched_exit_tp, since Linux 6.16) is hit by the thread itself. On older kernels a
 * thread that waited in a system call has the same stack until the call returns, so it is taken
 * then; other times have no stack. Walking each stack when the thread stops was rejected, because
 * most waits are short. A thread that does not run again before the end is sent with its registers,
 * and the recorder walks its stack.
 */
#include "off_cpu.h"

#include "common.h"
#include "interrupts.h"
#include "kernel_types.h"
#include "recorded.h"
#include "stack.h"
#include "watched.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

/* Set by the recorder before loading. */
const volatile __u64 minimum_ns = 0;
/* From this duration on, the waking thread's stack is taken. */
const volatile __u64 waker_minimum_ns = 0;
/* Stacks are taken at the end of the scheduler, not of system calls. */
const volatile bool has_scheduler_exit = 0;

/* Set by the recorder. */
__u32 is_on = 0;
__u64 on_since_ns = 0;
/* For end_thread: when recording was switched off (0: it was off already), whether it is over. */
__u64 off_since_ns = 0;
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

/* The threads that are recorded. */
struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct thread);
} threads SEC(".maps");

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

static __always_inline struct thread* thread_of(struct task_struct* task) {
  return bpf_task_storage_get(&threads, task, 0, 0);
}

/* ---- which threads ---- */

/* Sets the numbers of the thread. Returns false if the recorder cannot see it: the idle thread. */
static __always_inline bool identify(struct task_struct* task, struct thread* thread) {
  thread->tid = number_in_namespace(BPF_CORE_READ(task, thread_pid));
  thread->pid = number_in_namespace(BPF_CORE_READ(task, group_leader, thread_pid));
  return thread->tid != 0;
}

static __always_inline void follow(struct task_struct* task, const struct thread* as) {
  if (thread_of(task)) return;
  if (!bpf_task_storage_get(&threads, task, (void*)as, BPF_LOCAL_STORAGE_GET_F_CREATE))
    count(XPU_OFF_CPU_UNFOLLOWED);
}

SEC("tp_btf/sched_process_fork")
int inherit_mark(__u64* ctx) {
  mark_child((void*)ctx[0], (void*)ctx[1]);
  return 0;
}

SEC("tp_btf/sched_wakeup_new")
int begin_thread(__u64* ctx) {
  struct task_struct* task = (void*)ctx[0];
  struct thread first = {.state = XPU_OFF_CPU_CREATED};
  struct identity creator;

  if (watch == XPU_WATCH_DESCENDANTS && !is_task_recorded(task)) return 0;
  if (!identify(task, &first) || !is_watched(first.pid)) return 0;
  first.since_ns = first.ready_ns = bpf_ktime_get_ns();
  creator = current_identity();
  first.waker.kind = XPU_WAKER_THREAD;
  first.waker.pid = creator.pid;
  first.waker.tid = creator.tid;
  bpf_get_current_comm(first.waker.name, sizeof(first.waker.name));
  follow(task, &first);
  return 0;
}

/* For all threads, before the recording of running processes begins. */
SEC("iter/task")
int follow_running_thread(__u64* ctx) {
  struct task_struct* task = (void*)ctx[1];
  struct thread first = {};

  if (!task || !identify(task, &first) || !is_watched(first.pid)) return 0;
  follow(task, &first);
  return 0;
}

/* ---- output ---- */

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
  wait->ip = wait->sp = wait->bp = 0;
  wait->is_open = 0;
  wait->own_tid = 0;
  wait->waker = thread->waker;
  return wait->end_ns != 0;
}

#define WAIT_WITHOUT_FRAMES __builtin_offsetof(struct xpu_off_cpu_wait, stack.frames)

/* `open`: the task of a thread that still does not run; otherwise null. */
static __always_inline void output_without_stack(struct thread* thread, struct task_struct* open) {
  struct xpu_off_cpu_wait* wait;
  struct pt_regs* entry;

  wait = bpf_ringbuf_reserve(&off_cpu_events, WAIT_WITHOUT_FRAMES, 0);
  if (!wait) {
    if (__sync_lock_test_and_set(&thread->ended.end_ns, 0)) count(XPU_OFF_CPU_DROPPED);
    return;
  }
  if (!take_ended(wait, thread)) {
    bpf_ringbuf_discard(wait, BPF_RB_NO_WAKEUP);
    return;
  }
  if (open) {
    wait->is_open = 1;
    wait->own_tid = own_thread_number(open);
    entry = (void*)bpf_task_pt_regs(open);
    wait->ip = BPF_CORE_READ(entry, ip);
    wait->sp = BPF_CORE_READ(entry, sp);
    wait->bp = BPF_CORE_READ(entry, bp);
  }
  wait->stack.kernel_frames = 0;
  wait->stack.user_frames = 0;
  wait->stack.user_walk = 0;
  wait->stack.user_stop = XPU_STOP_NO_STACK;
  wait->stack.python_frames = 0;
  wait->stack.python_stop = XPU_PYTHON_COMPLETE;
  bpf_ringbuf_submit(wait, BPF_RB_NO_WAKEUP);
}

/* For the running thread, which is where it was when it did not run. */
static __always_inline void output_with_stack(void* ctx, struct thread* thread) {
  __u32 zero = 0, size;
  struct user_registers registers = {};
  struct identity who;
  struct xpu_off_cpu_wait* wait = bpf_map_lookup_elem(&waits, &zero);

  if (!wait || !take_ended(wait, thread)) return;
  who.pid = wait->pid;
  who.tid = wait->tid;
  take_entry_registers(&registers, &wait->stack);
  size = __builtin_offsetof(struct xpu_off_cpu_wait, stack) +
         take_stack(ctx, &registers, who, &wait->stack, 0);
  if (bpf_ringbuf_output(&off_cpu_events, wait, size, BPF_RB_NO_WAKEUP)) count(XPU_OFF_CPU_DROPPED);
}

static __always_inline void output_totals(struct thread* thread, __u64 now_ns) {
  struct xpu_off_cpu_totals* totals;
  __u64 times = 0;
  int i;

  totals = bpf_ringbuf_reserve(&off_cpu_totals, sizeof(*totals), 0);
  if (!totals) {
    for (i = 0; i < XPU_OFF_CPU_RUNNING; i++) times += thread->sums[i].count;
    add_to_counter(XPU_OFF_CPU_UNSUMMED, times);
    return;
  }
  totals->pid = thread->pid;
  totals->tid = thread->tid;
  totals->time_ns = now_ns;
  for (i = 0; i < XPU_OFF_CPU_STATES; i++) totals->sums[i] = thread->sums[i];
  bpf_ringbuf_submit(totals, BPF_RB_NO_WAKEUP);
}

/* ---- exec ---- */

/*
 * The thread that calls exec gets the number of the first one. The program that the recorder starts
 * is recorded from here on, and one that gains privileges no longer.
 */
SEC("tp_btf/sched_process_exec")
int begin_program(__u64* ctx __attribute__((unused))) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct thread first = {.state = XPU_OFF_CPU_RUNNING};
  struct thread* thread = thread_of(task);
  const __u64 now_ns = bpf_ktime_get_ns();

  if (watch == XPU_WATCH_DESCENDANTS) {
    mark_program();
    if (!is_recorded()) {
      if (!thread) return 0;
      output_totals(thread, now_ns);
      bpf_task_storage_delete(&threads, task);
      return 0;
    }
  }
  if (thread) {
    identify(task, thread);
    return 0;
  }
  if (watch != XPU_WATCH_DESCENDANTS) return 0;
  first.since_ns = now_ns;
  if (identify(task, &first)) follow(task, &first);
  return 0;
}

/* ---- states ---- */

/* If the thread has not moved since recording began, its state is as old as that. */
static __always_inline __u64 begin_of_state(const struct thread* thread) {
  return thread->since_ns > on_since_ns ? thread->since_ns : on_since_ns;
}

static __always_inline bool has_state(const struct thread* thread) {
  return thread->since_ns >= on_since_ns;
}

/* Ends the time in which the thread did not run; `is_open`: it still does not. */
static __always_inline void complete(struct task_struct* task, struct thread* thread, __u64 end_ns,
                                     bool is_open) {
  const __u64 start_ns = begin_of_state(thread);
  __u64 ready_ns = thread->ready_ns;

  thread->ready_ns = 0;
  if (ready_ns < start_ns) {
    /* A thread that waited was woken: if not since it stopped, then while it was about to. */
    ready_ns = ready_ns && is_wait(thread->state) && !is_open ? start_ns : 0;
  }
  count(XPU_OFF_CPU_SEEN);
  if (end_ns - start_ns < minimum_ns) {
    add_to_sum(thread, thread->state, end_ns - start_ns, ready_ns ? end_ns - ready_ns : 0);
    return;
  }
  if (!ready_ns) thread->waker.kind = thread->waker.pid = thread->waker.tid = 0;
  thread->ended.state = thread->state;
  thread->ended.start_ns = start_ns;
  thread->ended.ready_ns = ready_ns;
  thread->ended.end_ns = end_ns;
  note_system_call(task, &thread->ended);
}

static __always_inline void leave(void* ctx, struct task_struct* task, bool is_preempted,
                                  __u32 state, __u64 now_ns) {
  struct thread* thread = thread_of(task);

  if (!thread) return;
  if (thread->ended.end_ns) {
    /* It is still in the system call in which it waited. */
    if (thread->ended.system_call >= 0 && !(state & STATE_DEAD)) {
      output_with_stack(ctx, thread);
    } else {
      output_without_stack(thread, 0);
    }
  }
  if (is_on) {
    if (has_state(thread) && thread->state != XPU_OFF_CPU_RUNNING) {
      /* When it began to run is not known. */
      count(XPU_OFF_CPU_MISSED);
      complete(task, thread, now_ns, false);
      if (thread->ended.end_ns) output_without_stack(thread, 0);
      thread->since_ns = now_ns;
    }
    add_to_sum(thread, XPU_OFF_CPU_RUNNING, now_ns - begin_of_state(thread), 0);
    thread->since_ns = now_ns;
    thread->state = state_of(is_preempted, state);
  }
  if (state & STATE_DEAD) {
    output_totals(thread, now_ns);
    bpf_task_storage_delete(&threads, task);
  }
}

static __always_inline void enter(struct task_struct* task, __u64 now_ns) {
  struct thread* thread = thread_of(task);

  if (!thread || !is_on) return;
  if (!has_state(thread)) {
    /* It would have been woken if it had been blocked when recording began. */
    thread->state = XPU_OFF_CPU_PREEMPTED;
  } else if (thread->state == XPU_OFF_CPU_RUNNING) {
    /* When it stopped is not known. */
    count(XPU_OFF_CPU_MISSED);
    return;
  }
  complete(task, thread, now_ns, false);
  thread->since_ns = now_ns;
  thread->state = XPU_OFF_CPU_RUNNING;
  if (!thread->ended.end_ns) return;
  /* The stack of others is taken after the switch, or at the end of the system call. */
  if (thread->ended.state == XPU_OFF_CPU_CREATED || !BPF_CORE_READ(task, mm) ||
      (!has_scheduler_exit && thread->ended.system_call < 0))
    output_without_stack(thread, 0);
}

/* The state is an argument since Linux 5.18; the task's own may have changed by now. */
SEC("tp_btf/sched_switch")
int off_cpu_switch(__u64* ctx) {
  const __u64 now_ns = bpf_ktime_get_ns();

  leave(ctx, (void*)ctx[1], ctx[0], ctx[3], now_ns);
  enter((void*)ctx[2], now_ns);
  return 0;
}

SEC("tp_btf/sched_exit_tp")
int take_stack_after_switch(__u64* ctx) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct thread* thread = thread_of(task);

  if (!thread) return 0;
  /* Linux 6.18 does not report some switches from kernel threads as such. */
  if (is_on && has_state(thread) && thread->state != XPU_OFF_CPU_RUNNING)
    enter(task, bpf_ktime_get_ns());
  if (thread->ended.end_ns) output_with_stack(ctx, thread);
  return 0;
}

SEC("tp_btf/sys_exit")
int take_stack_of_wait(__u64* ctx) {
  struct thread* thread = thread_of(bpf_get_current_task_btf());

  if (thread && thread->ended.end_ns) output_with_stack(ctx, thread);
  return 0;
}

/* ---- wake-ups ---- */

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

/* Returns whether the running thread is recorded. */
static __always_inline bool identify_waker(const void* ctx, struct xpu_waker* waker) {
  struct thread* own;
  struct identity who;

  waker->pid = waker->tid = 0;
  waker->kind = XPU_WAKER_INTERRUPT;
  if (is_in_interrupt(ctx)) return false;
  waker->kind = XPU_WAKER_THREAD;
  bpf_get_current_comm(waker->name, sizeof(waker->name));
  own = thread_of(bpf_get_current_task_btf());
  if (own) {
    waker->pid = own->pid;
    waker->tid = own->tid;
    return true;
  }
  who = current_identity();
  waker->pid = who.pid;
  waker->tid = who.tid;
  /* The idle thread works for interrupts only; another without a number is not visible. */
  if (!who.tid) waker->kind = bpf_get_current_pid_tgid() ? XPU_WAKER_UNKNOWN : XPU_WAKER_INTERRUPT;
  return false;
}

/* sched_wakeup would be hit later, and on some machines on the CPU of the woken thread. */
SEC("tp_btf/sched_waking")
int note_waker(__u64* ctx) {
  struct task_struct* task = (void*)ctx[0];
  struct thread* thread = thread_of(task);
  __u64 now_ns, duration_ns;
  bool is_waker_recorded;

  if (!thread || !is_on) return 0;
  now_ns = bpf_ktime_get_ns();
  if (!has_state(thread)) {
    if (BPF_CORE_READ(task, on_cpu)) return 0;
    thread->state = state_of(false, BPF_CORE_READ(task, __state));
    thread->since_ns = on_since_ns;
  }
  duration_ns = now_ns - thread->since_ns;
  thread->ready_ns = now_ns;
  is_waker_recorded = identify_waker(ctx, &thread->waker);
  if (thread->state == XPU_OFF_CPU_RUNNING) return 0; /* it may be about to stop */
  if (is_waker_recorded && is_wait(thread->state) && duration_ns >= waker_minimum_ns)
    output_waker(ctx, thread, now_ns);
  return 0;
}

/* ---- the end ---- */

/* For all threads, after recording has been switched off. */
SEC("iter/task")
int end_thread(__u64* ctx) {
  struct task_struct* task = (void*)ctx[1];
  struct thread* thread;

  if (!task) return 0;
  thread = thread_of(task);
  if (!thread) return 0;
  if (thread->ended.end_ns) output_without_stack(thread, 0);
  if (off_since_ns) {
    if (!has_state(thread)) {
      thread->state = BPF_CORE_READ(task, on_cpu) ? XPU_OFF_CPU_RUNNING
                                                  : state_of(false, BPF_CORE_READ(task, __state));
    }
    if (thread->state == XPU_OFF_CPU_RUNNING) {
      add_to_sum(thread, XPU_OFF_CPU_RUNNING, off_since_ns - begin_of_state(thread), 0);
    } else {
      complete(task, thread, off_since_ns, true);
      if (thread->ended.end_ns) output_without_stack(thread, task);
    }
    thread->since_ns = 0;
  }
  if (is_over) output_totals(thread, bpf_ktime_get_ns());
  return 0;
}
