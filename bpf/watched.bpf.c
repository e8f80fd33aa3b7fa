/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which processes belong to a recording of running processes? Adds their children before the first
 * instruction of these.
 */
#include "watched.h"

#include "common.h"
#include "kernel_types.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

/* The number of running ones. */
__u64 running = 0;

SEC("tp_btf/sched_process_fork")
int follow_child(__u64* ctx) {
  struct task_struct* parent = (void*)ctx[0];
  struct task_struct* child = (void*)ctx[1];
  const __u32 runs = XPU_WATCHED_RUNS;
  __u32 parent_pid, pid;

  if (BPF_CORE_READ(child, group_leader) != child) return 0;
  pid = number_in_namespace(BPF_CORE_READ(child, thread_pid));
  parent_pid = number_in_namespace(BPF_CORE_READ(parent, group_leader, thread_pid));
  if (!pid) return 0;
  if (!bpf_map_lookup_elem(&watched, &parent_pid)) {
    /* The pid of an ended process. */
    bpf_map_delete_elem(&watched, &pid);
  } else if (bpf_map_update_elem(&watched, &pid, &runs, 0)) {
    count(XPU_TASKS_UNMARKED);
  } else {
    __sync_fetch_and_add(&running, 1);
  }
  return 0;
}

/* Runs for each thread; the last one removes its process. */
SEC("tp_btf/sched_process_exit")
int end_process(__u64* ctx) {
  struct task_struct* task = (void*)ctx[0];
  __u32 pid, *state;

  if (BPF_CORE_READ(task, signal, live.counter) != 0) return 0;
  pid = number_in_namespace(BPF_CORE_READ(task, group_leader, thread_pid));
  state = bpf_map_lookup_elem(&watched, &pid);
  if (state && __sync_lock_test_and_set(state, XPU_WATCHED_ENDED) == XPU_WATCHED_RUNS)
    __sync_fetch_and_add(&running, -1);
  return 0;
}
