/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What off_cpu.bpf.c keeps of each thread. */
#ifndef XPU_BPF_OFF_CPU_H
#define XPU_BPF_OFF_CPU_H

#include "bpf/events.h"
#include "interrupts.h"
#include "kernel_types.h"

/* Bits of a task's state, from the kernel's sched.h. */
#define STATE_INTERRUPTIBLE 1
#define STATE_UNINTERRUPTIBLE 2
#define STATE_STOPPED 4 /* by a signal */
#define STATE_TRACED 8  /* by a debugger */
#define STATE_DEAD 0x80
#define STATE_NO_LOAD 0x400 /* an idle kernel thread, which only seems to be uninterruptible */

/* A time whose stack has not been taken. */
struct ended_time {
  __u64 end_ns; /* 0: there is none */
  __u64 start_ns;
  __u64 ready_ns;
  __u64 argument;
  __u32 state;
  __s32 system_call;
  __u32 file_type;
  bool is_open; /* it ended after recording had been switched off, which is end_ns */
};

/*
 * Used by the CPU that switches from or to the thread, and by the one that wakes it, never at the
 * same time: a thread is woken after it has left its CPU, and enters one after that. When recording
 * is switched off, the recorder uses it too: see close_state.
 */
struct thread {
  __u64 since_ns;  /* of the state; before recording began: the state is not known */
  __u64 ready_ns;  /* when it was last woken */
  __u64 closed_ns; /* off_since_ns when its state was closed */
  __u32 state;
  __u32 pid;
  __u32 tid;
  struct xpu_waker waker;
  struct ended_time ended;
  struct xpu_off_cpu_sum sums[XPU_OFF_CPU_STATES];
};

static __always_inline __u32 state_of(bool is_preempted, __u32 state) {
  if (is_preempted || state == 0) return XPU_OFF_CPU_PREEMPTED;
  if (state & STATE_INTERRUPTIBLE) return XPU_OFF_CPU_BLOCKED;
  if (state & STATE_NO_LOAD) return XPU_OFF_CPU_BLOCKED;
  if (state & STATE_UNINTERRUPTIBLE) return XPU_OFF_CPU_UNINTERRUPTIBLE;
  if (state & (STATE_STOPPED | STATE_TRACED)) return XPU_OFF_CPU_STOPPED;
  return XPU_OFF_CPU_UNKNOWN;
}

static __always_inline void add_to_sum(struct thread* thread, __u32 state, __u64 duration_ns,
                                       __u64 ready_ns) {
  struct xpu_off_cpu_sum* sum;

  if (state >= XPU_OFF_CPU_STATES) return; /* impossible; for the verifier */
  sum = &thread->sums[state];
  sum->count++;
  sum->duration_ns += duration_ns;
  sum->ready_ns += ready_ns;
}

/* Whether the first argument of a system call is the descriptor whose kind explains the wait. */
static __always_inline bool takes_file(__s32 system_call) {
  switch (system_call) {
    case 0:   /* read */
    case 1:   /* write */
    case 16:  /* ioctl */
    case 17:  /* pread64 */
    case 18:  /* pwrite64 */
    case 19:  /* readv */
    case 20:  /* writev */
    case 295: /* preadv */
    case 296: /* pwritev */
    case 327: /* preadv2 */
    case 328: /* pwritev2 */
      return true;
    default:
      return false;
  }
}

#define FILE_TYPE_MASK 0170000     /* S_IFMT */
#define ANONYMOUS_FILES 0x09041934 /* ANON_INODE_FS_MAGIC */

/* Descriptors that the kernel makes without a file have names such as [eventfd]. */
static __always_inline __u32 anonymous_type_of(struct file* file) {
  char name[8] = {};

  bpf_probe_read_kernel(name, sizeof(name), BPF_CORE_READ(file, f_path.dentry, d_name.name));
  if (name[0] == '[' && name[1] == 'e' && name[6] == 'f') return XPU_FILE_EVENT;
  if (name[0] == '[' && name[1] == 't' && name[6] == 'f') return XPU_FILE_TIMER;
  if (name[0] == '[' && name[1] == 's' && name[7] == 'f') return XPU_FILE_SIGNAL;
  return 0;
}

static __always_inline __u32 file_type_of(struct task_struct* task, __u32 descriptor) {
  struct fdtable* table = BPF_CORE_READ(task, files, fdt);
  struct file** files = BPF_CORE_READ(table, fd);
  struct file* file = 0;

  if (descriptor >= BPF_CORE_READ(table, max_fds)) return 0;
  bpf_probe_read_kernel(&file, sizeof(file), files + descriptor);
  if (BPF_CORE_READ(file, f_inode, i_sb, s_magic) == ANONYMOUS_FILES)
    return anonymous_type_of(file);
  return BPF_CORE_READ(file, f_inode, i_mode) & FILE_TYPE_MASK;
}

static __always_inline bool is_wait(__u32 state) {
  return state == XPU_OFF_CPU_BLOCKED || state == XPU_OFF_CPU_UNINTERRUPTIBLE ||
         state == XPU_OFF_CPU_STOPPED;
}

/* How often the task has run; 0 if the kernel does not count that. */
static __always_inline __u64 run_count_of(struct task_struct* task) {
  return bpf_core_field_exists(task->sched_info.pcount) ? BPF_CORE_READ(task, sched_info.pcount)
                                                        : 0;
}

#define SYSTEM_CALL_IOCTL 16

static __always_inline void note_system_call(struct task_struct* task, struct ended_time* ended) {
  struct pt_regs* entry;

  ended->system_call = -1;
  ended->argument = 0;
  ended->file_type = 0;
  if (!is_wait(ended->state) || !BPF_CORE_READ(task, mm)) return;
  ended->system_call = system_call_of(task);
  if (ended->system_call < 0) {
    ended->system_call = is_in_page_fault(task) ? XPU_IN_PAGE_FAULT : -1;
    return;
  }
  entry = (void*)bpf_task_pt_regs(task);
  ended->argument = BPF_CORE_READ(entry, di);
  if (takes_file(ended->system_call)) ended->file_type = file_type_of(task, ended->argument);
}

#endif
