/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interface 2: what the BPF programs write into their ring buffers. C, shared by kernel and recorder,
 * host byte order, never stored.
 */
#ifndef XPU_BPF_EVENTS_H
#define XPU_BPF_EVENTS_H

#include "bpf/python_layout.h"

/* The most frames of one kind that the kernel's walker gives (kernel.perf_event_max_stack). */
#define XPU_MAX_FRAMES 127
/* The most user frames that our own walk gives. */
#define XPU_MAX_USER_FRAMES 512

/* Frames of all kinds; one of Python takes two words (python_layout.h). */
#define XPU_STACK_WORDS (XPU_MAX_FRAMES + XPU_MAX_USER_FRAMES + 2 * XPU_MAX_PYTHON_FRAMES)

/* Words of the stack that a walk reads at a time. */
#define XPU_STACK_WINDOW 64

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

/* How user frames were found: bits of xpu_stack::user_walk. */
#define XPU_WALK_TABLES 1         /* some by an unwind table */
#define XPU_WALK_FRAME_POINTERS 2 /* some by a frame pointer */
#define XPU_WALK_NOT_READY 4      /* some of them because no table was there yet */

/* Why the walk of the user frames ended. */
enum xpu_walk_stop {
  XPU_STOP_COMPLETE,    /* at the outermost frame */
  XPU_STOP_DEPTH,       /* at the limit of frames */
  XPU_STOP_UNREADABLE,  /* memory of the stack could not be read */
  XPU_STOP_NO_RULE,     /* neither a table nor a frame pointer that leads on */
  XPU_STOP_UNSUPPORTED, /* a rule of a form that tables do not hold */
  XPU_STOP_NOT_CODE,    /* a return address that is in no executable mapping */
  XPU_STOP_STUCK,       /* a frame that does not lie above the one before */
  XPU_STOP_NOT_WALKED,  /* the kernel's frame pointer walk was taken, which does not tell */
  XPU_STOP_NO_STACK,    /* the thread has none now: it is between two programs, or ending */
  XPU_STOP_NOT_CALLED,  /* a return address that follows no call, and is cut off */
  XPU_STOPS,
};

/*
 * `frames` holds kernel_frames, then at once user_frames addresses, then python_frames pairs of
 * words, each innermost first; an event ends with its last frame (it may also be longer: read the
 * counts). A count of 0 or the negative error of bpf_get_stack: no such stack, which is normal for
 * the kernel part of a sample taken in user mode.
 */
struct xpu_stack {
  __s32 kernel_frames;
  __s32 user_frames;
  __u32 user_walk; /* XPU_WALK_ */
  __u32 user_stop; /* enum xpu_walk_stop */
  __u32 python_frames;
  __u32 python_stop; /* enum xpu_python_stop */
  __u64 frames[XPU_STACK_WORDS];
  /* The walk's own; what of it is in an event means nothing. */
  __u64 registers[16];
  __u64 window[XPU_STACK_WINDOW];
  __u64 process;    /* whose stack it is */
  __u64 unwound_sp; /* of the frame that was left by its frame pointer last */
};

/* Events that samples of one recording are taken at. */
#define XPU_MAX_SAMPLED_EVENTS 64

/* Ring `samples`. */
struct xpu_sample {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u32 pid;     /* of the recorder's pid namespace; 0: not visible there */
  __u32 tid;
  __u32 cpu;
  __u32 source; /* the event, from 1 */
  __u64 period; /* how many events, or ns of a clock, since the one before */
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
 * A probe's cookie: its number in the low half, above it which argument of the function is the GPU
 * kernel, and a flag.
 */
#define XPU_PROBE_ARGUMENT_SHIFT 32
/* Of a probe at a return: hits have the stack of the caller, to which it returns. */
#define XPU_PROBE_STACK_AT_RETURN (1ull << 40)

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
   * depends on the function's first instruction and on the kernel. At the return: of the caller,
   * or without frames.
   */
  struct xpu_stack stack;
};

#endif
