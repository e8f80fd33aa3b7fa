/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Door 2: what the BPF programs write into their ring buffers. C, shared by kernel and recorder,
 * host byte order, never stored.
 */
#ifndef XPU_BPF_EVENTS_H
#define XPU_BPF_EVENTS_H

#ifdef __bpf__
#include "kernel_types.h"
#else
#include <linux/types.h>
#endif

/* The most frames of one kind that the kernel's walker gives (kernel.perf_event_max_stack). */
#define XPU_MAX_FRAMES 127

/* domain << XPU_DOMAIN_SHIFT | callback id, the marker's second argument (wire::kDomainShift). */
#define XPU_DOMAIN_SHIFT 28

enum xpu_counter {
  XPU_SAMPLES_SEEN,
  XPU_SAMPLES_DROPPED, /* ring full */
  XPU_LAUNCHES_SEEN,
  XPU_LAUNCHES_DROPPED, /* ring full */
  XPU_PROBE_HITS_SEEN,
  XPU_PROBE_HITS_DROPPED, /* ring full */
  XPU_TASKS_UNMARKED,     /* descendants of the target that could not be marked as such */
  XPU_COUNTERS,
};

/*
 * `frames` holds kernel_frames, then at once user_frames addresses, each innermost first; an event
 * ends with its last frame (it may also be longer: read the counts). A count of 0 or the negative
 * error of bpf_get_stack: no such stack, which is normal for the kernel part of a sample taken in
 * user mode.
 */
struct xpu_stack {
  __s32 kernel_frames;
  __s32 user_frames;
  __u64 frames[2 * XPU_MAX_FRAMES];
};

/* Ring `samples`. */
struct xpu_sample {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u32 pid;     /* of the recorder's pid namespace; 0: not visible there */
  __u32 tid;
  __u32 cpu;
  __u32 source;
  struct xpu_stack stack;
};

/* Map `refusals`, by pid: another profiler in the process asked for CUPTI in vain. */
struct xpu_refusal {
  __u64 count;
  __u64 last_ns;
  __u32 last_tid;
  __u32 reserved;
};

/* Ring `launches`: one hit of the marker of the injected library. */
struct xpu_launch {
  __u64 time_ns;
  __u32 pid;
  __u32 tid;
  __u32 cpu;
  __u32 correlation_id;
  __u64 instance;
  __u32 domain; /* CUPTI_CB_DOMAIN_* */
  __u32 callback_id;
  struct xpu_stack stack;
};

/*
 * A probe's cookie: its number in the low half, above it which argument of the function is the
 * kernel.
 */
#define XPU_PROBE_ARGUMENT_SHIFT 32

enum xpu_probe_argument {
  XPU_PROBE_NO_ARGUMENT,
  XPU_PROBE_FIRST_ARGUMENT,
  XPU_PROBE_SECOND_ARGUMENT,
};

/* Ring `probe_hits`: a function was entered, or returned. */
struct xpu_probe_hit {
  __u64 time_ns;
  __u32 pid;
  __u32 tid;
  __u32 cpu;
  __u32 probe;
  __u32 is_return;
  __s32 return_value; /* at the return */
  __u64 kernel;       /* at the entry: the argument that names it */
  __u64 caller;       /* at the entry: the return address; 0: not readable */
  /*
   * At the entry, of the function itself: whether its walk has the caller as its second frame
   * depends on the function's first instruction and on the kernel. At the return: without frames.
   */
  struct xpu_stack stack;
};

#endif
