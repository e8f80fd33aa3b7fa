/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the programs: the identity of the current thread, and counters. Included once per
 * program file.
 */
#ifndef XPU_BPF_COMMON_H
#define XPU_BPF_COMMON_H

#include "bpf/events.h"
#include "kernel_types.h"

/* Set by the recorder before loading: its own pid namespace, as fstat of /proc/self/ns/pid. */
const volatile __u64 pid_namespace_device = 0;
const volatile __u64 pid_namespace_inode = 0;

/* Totals per CPU. Losses are counted where they happen, because a ring buffer counts nothing. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, XPU_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} counters SEC(".maps");

/* Atomic, because a uprobe program can be preempted by another run of itself on the same CPU. */
static __always_inline void add_to_counter(__u32 counter, __u64 number) {
  __u64* value = bpf_map_lookup_elem(&counters, &counter);

  if (value) __sync_fetch_and_add(value, number);
}

static __always_inline void count(__u32 counter) { add_to_counter(counter, 1); }

/* The deepest nesting of pid namespaces that the kernel allows. */
#define MAX_PID_NAMESPACE_LEVEL 32

/* The number of `pid` in the recorder's namespace; 0 if it has none there. */
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

/* The number of the initial pid namespace, from the kernel's proc_ns.h. */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCU

struct identity {
  __u32 pid;
  __u32 tid;
};

/*
 * A thread that is ending has returned its number, and so has a process whose main thread has
 * ended.
 */
static __always_inline struct identity identity_without_number(struct identity who) {
  if (pid_namespace_inode == INITIAL_PID_NAMESPACE) {
    who.pid = bpf_get_current_pid_tgid() >> 32;
    who.tid = bpf_get_current_pid_tgid();
  } else {
    who.tid = who.pid; /* unknown there, so its process represents it */
  }
  return who;
}

/*
 * The helper only works for tasks whose own namespace is the recorder's. For a task in a nested
 * namespace (a container that the program started) the levels are searched one by one.
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
  if (!who.tid) who = identity_without_number(who);
  return who;
}

#endif
