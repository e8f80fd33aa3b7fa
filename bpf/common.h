/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs share: who runs, its stack, the counters. Included once per program file. */
#ifndef XPU_BPF_COMMON_H
#define XPU_BPF_COMMON_H

#include "bpf/events.h"
#include "kernel_types.h"

/* Set by the recorder before loading: its own pid namespace, as fstat of /proc/self/ns/pid. */
const volatile __u64 pid_namespace_device = 0;
const volatile __u64 pid_namespace_inode = 0;

/* Totals, per CPU: losses are counted where they happen, the ring buffer itself counts nothing. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, XPU_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} counters SEC(".maps");

/* Atomic: a uprobe program can be preempted, and followed on its CPU by itself. */
static __always_inline void count(__u32 counter) {
  __u64* value = bpf_map_lookup_elem(&counters, &counter);

  if (value) __sync_fetch_and_add(value, 1);
}

/* The deepest nesting of pid namespaces that the kernel allows. */
#define MAX_PID_NAMESPACE_LEVEL 32

/* The number of `pid` in the recorder's namespace, 0: it has none there. */
static __always_inline __u32 number_in_namespace(struct pid* pid) {
  __u32 level = BPF_CORE_READ(pid, level);
  __u32 upid_bytes = bpf_core_type_size(struct upid);
  int i;

  for (i = 0; i <= MAX_PID_NAMESPACE_LEVEL; i++) {
    struct upid* upid = (void*)&pid->numbers[0] + i * upid_bytes;

    if (i > level) break;
    if (BPF_CORE_READ(upid, ns, ns.inum) == pid_namespace_inode) return BPF_CORE_READ(upid, nr);
  }
  return 0;
}

struct identity {
  __u32 pid;
  __u32 tid;
};

/*
 * The helper answers only for tasks whose own namespace is the recorder's; a task further inside
 * (a container that the program started) is looked up level by level.
 */
static __always_inline struct identity current_identity(void) {
  struct identity who = {};
  struct bpf_pidns_info info = {};

  if (bpf_get_ns_current_pid_tgid(pid_namespace_device, pid_namespace_inode, &info, sizeof(info)) ==
      0) {
    who.pid = info.tgid;
    who.tid = info.pid;
  } else {
    struct task_struct* task = (void*)bpf_get_current_task();

    who.tid = number_in_namespace(BPF_CORE_READ(task, thread_pid));
    who.pid = number_in_namespace(BPF_CORE_READ(task, group_leader, thread_pid));
  }
  return who;
}

/*
 * Fills `stack` and returns its bytes: the frames lie without a gap, kernel first, so that an event
 * takes what its stack needs and no more. `with_kernel` is a constant.
 */
static __always_inline __u32 take_stack(void* ctx, struct xpu_stack* stack, int with_kernel) {
  const __u64 limit = XPU_MAX_FRAMES * sizeof(__u64);
  __u64 kernel_bytes = 0, user_bytes = 0;
  long result = 0;

  if (with_kernel) result = bpf_get_stack(ctx, stack->frames, limit, 0);
  stack->kernel_frames = result;
  if (result > 0) {
    kernel_bytes = result;
    stack->kernel_frames = kernel_bytes / sizeof(__u64);
  }
  if (kernel_bytes > limit) /* cannot be: for the verifier */
    return 0;
  result = bpf_get_stack(ctx, (void*)stack->frames + kernel_bytes, limit, BPF_F_USER_STACK);
  stack->user_frames = result;
  stack->user_walk = XPU_WALK_FRAME_POINTERS;
  stack->user_stop = XPU_STOP_NOT_WALKED;
  if (result > 0) {
    user_bytes = result;
    stack->user_frames = user_bytes / sizeof(__u64);
  }
  if (user_bytes > limit) return 0;
  return __builtin_offsetof(struct xpu_stack, frames) + kernel_bytes + user_bytes;
}

#endif
