/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Marks the threads of the program that the recorder starts and of its descendants, for events that
 * other programs trigger too: clocks of CPUs, probes on files. The recorder marks the program
 * before its exec. Threads are identified by their tasks, so this works in every pid namespace; a
 * table of pids was rejected, because it needs a limit and has to be cleaned up. Included once per
 * program file.
 */
#ifndef XPU_BPF_RECORDED_H
#define XPU_BPF_RECORDED_H

#include "bpf/watched_layout.h"
#include "common.h"
#include "kernel_types.h"

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, __u32);
} recorded SEC(".maps");

/* Called at the fork, before the child runs. */
static __always_inline void mark_child(struct task_struct* parent, struct task_struct* child) {
  __u32* mark = bpf_task_storage_get(&recorded, parent, 0, 0);
  __u32 inherited;

  if (!mark) return;
  inherited = *mark;
  if (!bpf_task_storage_get(&recorded, child, &inherited, BPF_LOCAL_STORAGE_GET_F_CREATE))
    count(XPU_TASKS_UNMARKED);
}

/*
 * Whether the running task has perf events of its own, as all tasks have that inherit the
 * recorder's.
 */
static __always_inline bool has_perf_events(struct task_struct* task) {
  struct task_struct___before_6_2* before = (void*)task;

  if (bpf_core_field_exists(task->perf_event_ctxp)) return BPF_CORE_READ(task, perf_event_ctxp);
  return BPF_CORE_READ(before, perf_event_ctxp[0]) || BPF_CORE_READ(before, perf_event_ctxp[1]);
}

/*
 * Called at the exec. A program that gains privileges, or may not be read, has just lost the perf
 * events that report its mappings, and so have its descendants.
 */
static __always_inline void mark_program(void) {
  struct task_struct* task = bpf_get_current_task_btf();
  __u32* mark = bpf_task_storage_get(&recorded, task, 0, 0);

  if (mark && *mark != XPU_MARK_TAKEN_OUT)
    *mark = has_perf_events(task) ? XPU_MARK_IN_PROGRAM : XPU_MARK_TAKEN_OUT;
}

/* Kernel threads in a process, such as those of io_uring, are created without a fork. */
static __always_inline bool is_task_recorded(struct task_struct* task) {
  __u32* mark = bpf_task_storage_get(&recorded, task, 0, 0);

  if (!mark) mark = bpf_task_storage_get(&recorded, task->group_leader, 0, 0);
  return mark && *mark == XPU_MARK_IN_PROGRAM;
}

static __always_inline bool is_recorded(void) {
  return is_task_recorded(bpf_get_current_task_btf());
}

#endif
