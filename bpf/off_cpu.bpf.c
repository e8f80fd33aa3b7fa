/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long did threads not run, why, where in their code, and who woke them? Each thread has a
 * state and the time since when it is in it: a context switch ends the state of both of its
 * threads, and a wake-up notes its author. Times below `minimum_ns`, and all running time, are
 * added to the sums of the thread, which are sent when it ends, or a part of the capture.
 *
 * A longer time needs the stack of the thread, which is not readable in sched_switch: that is hit
 * on the stack and in the address space of the previous thread. The tracepoint at the end of the
 * scheduler (sched_exit_tp, since Linux 6.16) is hit by the thread itself. On older kernels a
 * thread that waited in a system call has the same stack until the call returns, so it is taken
 * then; other times have no stack. Walking each stack when the thread stops was rejected, because
 * most waits are short. A thread that does not run again before the end is sent with its registers
 * and kernel frames, and the recorder walks its user stack.
 */
#include "off_cpu.h"

#include "common.h"
#include "interrupts.h"
#include "kernel_types.h"
#include "off_cpu_output.h"
#include "recorded.h"
#include "watched.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

/* Set by the recorder before loading. */
const volatile __u64 minimum_ns = 0;
/* From this duration on, the waking thread's stack is taken. */
const volatile __u64 waker_minimum_ns = 0;
/* Stacks are taken at the end of the scheduler, not of system calls. */
const volatile bool has_scheduler_exit = 0;

/* The threads that are recorded. */
struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct thread);
} threads SEC(".maps");

/* Where other threads wait for the end of one. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16 << 10);
  __type(key, struct xpu_thread_end);
  __type(value, __u32);
} thread_ends SEC(".maps");

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
      output_totals(thread, now_ns, true);
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

/* Ends the time in which the thread did not run; `is_open`: recording has ended first. */
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
  thread->ended.is_open = is_open;
  note_system_call(task, &thread->ended);
  barrier(); /* who sees the end may read the rest */
  thread->ended.end_ns = end_ns;
}

/*
 * Ends the state of a thread, whose task may or may not run, when recording is switched off: when
 * the thread moves next, which tells its state and its stack, or when the recorder lists it,
 * whichever comes first.
 */
static __always_inline void close_state(struct task_struct* task, struct thread* thread,
                                        __u32 state) {
  const __u64 off_ns = off_since_ns;

  if (!off_ns || __sync_lock_test_and_set(&thread->closed_ns, off_ns) == off_ns) return;
  if (!has_state(thread)) thread->state = state;
  if (begin_of_state(thread) >= off_ns) return;
  if (thread->state == XPU_OFF_CPU_RUNNING) {
    add_to_sum(thread, XPU_OFF_CPU_RUNNING, off_ns - begin_of_state(thread), 0);
  } else {
    complete(task, thread, off_ns, true);
  }
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
      output_without_stack(thread);
    }
  }
  if (is_on) {
    if (has_state(thread) && thread->state != XPU_OFF_CPU_RUNNING) {
      /* When it began to run is not known. */
      count(XPU_OFF_CPU_MISSED);
      complete(task, thread, now_ns, false);
      if (thread->ended.end_ns) output_without_stack(thread);
      thread->since_ns = now_ns;
    }
    add_to_sum(thread, XPU_OFF_CPU_RUNNING, now_ns - begin_of_state(thread), 0);
    thread->since_ns = now_ns;
    thread->state = state_of(is_preempted, state);
  } else {
    close_state(task, thread, XPU_OFF_CPU_RUNNING);
    if (thread->ended.end_ns) {
      count(XPU_OFF_CPU_MISSED); /* when it began to run */
      output_without_stack(thread);
    }
  }
  if (state & STATE_DEAD) {
    output_totals(thread, now_ns, true);
    bpf_task_storage_delete(&threads, task);
  }
}

static __always_inline void enter(struct task_struct* task, __u64 now_ns) {
  struct thread* thread = thread_of(task);

  if (!thread) return;
  if (!is_on) {
    close_state(task, thread, XPU_OFF_CPU_PREEMPTED);
  } else {
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
  }
  if (!thread->ended.end_ns) return;
  /* The stack of others is taken after the switch, or at the end of the system call. */
  if (thread->ended.state == XPU_OFF_CPU_CREATED ||
      (!has_scheduler_exit && (thread->ended.system_call < 0 || !BPF_CORE_READ(task, mm))))
    output_without_stack(thread);
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
  if (has_state(thread) && thread->state != XPU_OFF_CPU_RUNNING) enter(task, bpf_ktime_get_ns());
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

  if (!thread) return 0;
  if (!is_on) {
    if (!has_state(thread) && !BPF_CORE_READ(task, on_cpu))
      close_state(task, thread, state_of(false, BPF_CORE_READ(task, __state)));
    return 0;
  }
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

static __always_inline void note_end_futex(struct task_struct* task, const struct thread* thread) {
  struct xpu_thread_end end = {.pid = thread->pid};

  end.futex = (__u64)BPF_CORE_READ(task, clear_child_tid);
  if (end.futex) bpf_map_update_elem(&thread_ends, &end, &thread->tid, 0);
}

/* For all threads, after recording has been switched off. */
SEC("iter/task")
int end_thread(__u64* ctx) {
  struct task_struct* task = (void*)ctx[1];
  struct thread* thread;

  if (!task) return 0;
  thread = thread_of(task);
  if (!thread) return 0;
  if (thread->ended.end_ns) output_without_stack(thread);
  note_end_futex(task, thread);
  close_state(task, thread,
              BPF_CORE_READ(task, on_cpu) ? XPU_OFF_CPU_RUNNING
                                          : state_of(false, BPF_CORE_READ(task, __state)));
  if (thread->ended.end_ns) output_open(thread, task);
  if (is_over) output_totals(thread, bpf_ktime_get_ns(), true);
  return 0;
}

/* The process whose threads list_wait reports, set by the recorder. */
__u32 listed_pid = 0;

/*
 * Runs for all threads while recording goes on, and reports where those of a process wait. Each
 * report is a time of no length, because the whole time is recorded when it ends. CPU samples have
 * the stacks of threads that run.
 */
SEC("iter/task")
int list_wait(__u64* ctx) {
  struct task_struct* task = (void*)ctx[1];
  struct thread waiting = {};

  if (!task || !identify(task, &waiting) || waiting.pid != listed_pid) return 0;
  waiting.state = waiting.ended.state = state_of(false, BPF_CORE_READ(task, __state));
  if (!is_wait(waiting.state)) return 0;
  waiting.ended.start_ns = waiting.ended.end_ns = bpf_ktime_get_ns();
  waiting.ended.is_open = true;
  note_system_call(task, &waiting.ended);
  count(XPU_OFF_CPU_SEEN);
  output_open(&waiting, task);
  return 0;
}

/* For all threads, before a part of the capture ends. */
SEC("iter/task")
int report_sums(__u64* ctx) {
  struct task_struct* task = (void*)ctx[1];
  struct thread* thread;

  if (!task) return 0;
  thread = thread_of(task);
  if (thread) output_totals(thread, bpf_ktime_get_ns(), false);
  return 0;
}
