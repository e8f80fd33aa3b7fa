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

#endif
