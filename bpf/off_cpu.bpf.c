/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long did threads not run, and where in their code? At each context switch `off_cpu_switch`
 * notes that the previous thread stops, and completes the time of the next one. Times shorter than
 * `minimum_ns` are added to the sums of the thread. A longer one needs the stack of the next
 * thread, which is not readable yet: sched_switch is hit on the stack and in the address space of
 * the previous one. If the thread waited in a system call, its user stack stays as it is until the
 * call returns, so the stack is taken then, or when the thread stops again in the same call. A
 * kprobe on the kernel's finish_task_switch would also reach the other times, which have no stack,
 * but kernels without kprobes exist. Walking each stack when the thread stops was rejected,
 * because most waits are short.
 */
#include "common.h"
#include "kernel_types.h"
#include "recorded.h"
#include "stack.h"
#include "watched.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

/* Set by the recorder before loading. */
const volatile __u64 minimum_ns = 0;

/* Set by the recorder. Times that begin or end while it is not set are not recorded. */
__u32 is_on = 0;

/* Bits of a task's state, from the kernel's sched.h. */
#define STATE_INTERRUPTIBLE 1
#define STATE_UNINTERRUPTIBLE 2
#define STATE_DEAD 0x80

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 16 << 20);
} off_cpu_waits SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, XPU_MAX_OFF_CPU_SUMS);
  __type(key, struct xpu_off_cpu_key);
  __type(value, struct xpu_off_cpu_sum);
} sums SEC(".maps");

/* Used only by the CPU that switches from or to the thread. */
struct thread {
  __u64 since_ns; /* it has not run since then; 0: it runs, or is not recorded */
  struct xpu_off_cpu_key key;
  __u32 ended_state;
  __s32 system_call; /* -1: none */
  __u64 ended_ns;    /* of a time whose stack has not been taken; 0: there is none */
  __u64 started_ns;
};

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct thread);
} threads SEC(".maps");

/* One per CPU is enough: the programs run with preemption disabled, none inside another. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct xpu_off_cpu_wait);
} waits SEC(".maps");

struct pt_regs___call {
  unsigned long orig_ax;
} __attribute__((preserve_access_index));

SEC("tp_btf/sched_process_fork")
int inherit_mark(__u64* ctx) {
  mark_child((void*)ctx[0], (void*)ctx[1]);
  return 0;
}

SEC("tp_btf/sched_process_exec")
int begin_program(__u64* ctx __attribute__((unused))) {
  mark_program();
  return 0;
}

static __always_inline __u32 state_of(bool is_preempted, __u32 state) {
  if (is_preempted || state == 0) return XPU_OFF_CPU_PREEMPTED;
  if (state & STATE_INTERRUPTIBLE) return XPU_OFF_CPU_BLOCKED;
  if (state & STATE_UNINTERRUPTIBLE) return XPU_OFF_CPU_UNINTERRUPTIBLE;
  return XPU_OFF_CPU_UNKNOWN;
}

static __always_inline void prepare_wait(struct xpu_off_cpu_wait* wait, struct thread* thread) {
  wait->start_ns = thread->started_ns;
  wait->end_ns = thread->ended_ns;
  wait->pid = thread->key.pid;
  wait->tid = thread->key.tid;
  wait->state = thread->ended_state;
  wait->system_call = thread->system_call;
  thread->ended_ns = 0;
}

static __always_inline void output_wait(struct xpu_off_cpu_wait* wait, __u32 stack_bytes) {
  const __u32 size = __builtin_offsetof(struct xpu_off_cpu_wait, stack) + stack_bytes;

  if (bpf_ringbuf_output(&off_cpu_waits, wait, size, BPF_RB_NO_WAKEUP)) count(XPU_OFF_CPU_DROPPED);
}

static __always_inline void output_without_stack(struct thread* thread) {
  __u32 zero = 0;
  struct xpu_off_cpu_wait* wait = bpf_map_lookup_elem(&waits, &zero);

  if (!wait) return;
  prepare_wait(wait, thread);
  wait->stack.kernel_frames = 0;
  wait->stack.user_frames = 0;
  wait->stack.user_walk = 0;
  wait->stack.user_stop = XPU_STOP_NOT_WALKED;
  wait->stack.python_frames = 0;
  wait->stack.python_stop = XPU_PYTHON_COMPLETE;
  output_wait(wait, __builtin_offsetof(struct xpu_stack, frames));
}

/* The running thread is still in the system call in which it waited. */
static __always_inline void output_with_stack(void* ctx, struct thread* thread) {
  __u32 zero = 0;
  struct user_registers registers = {};
  struct identity who;
  struct xpu_off_cpu_wait* wait = bpf_map_lookup_elem(&waits, &zero);

  if (!wait) return;
  prepare_wait(wait, thread);
  who.pid = wait->pid;
  who.tid = wait->tid;
  take_entry_registers(&registers, &wait->stack);
  output_wait(wait, take_stack(ctx, &registers, who, &wait->stack, 0));
}

static __always_inline void add_to_sum(const struct xpu_off_cpu_key* key, __u64 duration_ns) {
  struct xpu_off_cpu_sum* sum = bpf_map_lookup_elem(&sums, key);
  const struct xpu_off_cpu_sum first = {.count = 1, .duration_ns = duration_ns};

  if (sum) {
    sum->count++;
    sum->duration_ns += duration_ns;
  } else if (bpf_map_update_elem(&sums, key, &first, BPF_NOEXIST)) {
    count(XPU_OFF_CPU_UNSUMMED);
  }
}

static __always_inline void leave(void* ctx, struct task_struct* task, bool is_preempted,
                                  __u32 state, __u64 now_ns) {
  struct thread* thread = bpf_task_storage_get(&threads, task, 0, 0);
  struct identity who;

  if (thread && thread->ended_ns) {
    if (state & STATE_DEAD) {
      output_without_stack(thread);
    } else {
      output_with_stack(ctx, thread);
    }
  }
  if (!is_on || (state & STATE_DEAD)) return;
  if (watch == XPU_WATCH_DESCENDANTS && !is_recorded()) return;
  who = current_identity();
  if (!who.tid || !is_watched(who.pid)) return; /* the idle thread has no number */
  if (!thread) thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!thread) {
    count(XPU_OFF_CPU_SEEN);
    count(XPU_OFF_CPU_UNSUMMED);
    return;
  }
  thread->key.pid = who.pid;
  thread->key.tid = who.tid;
  thread->key.state = state_of(is_preempted, state);
  thread->since_ns = now_ns;
}

static __always_inline bool is_wait(__u32 state) {
  return state == XPU_OFF_CPU_BLOCKED || state == XPU_OFF_CPU_UNINTERRUPTIBLE;
}

/* -1: none. The kernel sets it to -1 for page faults and interrupts. */
static __always_inline __s32 system_call_of(struct task_struct* task, __u32 state) {
  struct pt_regs___call* entry;

  if (!is_wait(state) || !BPF_CORE_READ(task, mm)) return -1;
  entry = (void*)bpf_task_pt_regs(task);
  return BPF_CORE_READ(entry, orig_ax);
}

static __always_inline void enter(struct task_struct* task, __u64 now_ns) {
  struct thread* thread = bpf_task_storage_get(&threads, task, 0, 0);
  struct xpu_off_cpu_key key;
  __u64 duration_ns;

  if (!thread || !thread->since_ns) return;
  duration_ns = now_ns - thread->since_ns;
  thread->since_ns = 0;
  if (!is_on) return;
  count(XPU_OFF_CPU_SEEN);
  if (duration_ns < minimum_ns) {
    key = thread->key;
    add_to_sum(&key, duration_ns);
    return;
  }
  thread->ended_ns = now_ns;
  thread->started_ns = now_ns - duration_ns;
  thread->ended_state = thread->key.state;
  thread->system_call = system_call_of(task, thread->ended_state);
  if (thread->system_call < 0) output_without_stack(thread);
}

/* The state is an argument since Linux 5.18; the task's own may have changed by now. */
SEC("tp_btf/sched_switch")
int off_cpu_switch(__u64* ctx) {
  const __u64 now_ns = bpf_ktime_get_ns();

  leave(ctx, (void*)ctx[1], ctx[0], ctx[3], now_ns);
  enter((void*)ctx[2], now_ns);
  return 0;
}

SEC("tp_btf/sys_exit")
int take_stack_of_wait(__u64* ctx) {
  struct thread* thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);

  if (thread && thread->ended_ns) output_with_stack(ctx, thread);
  return 0;
}
