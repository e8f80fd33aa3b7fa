/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the BPF programs write into their ring buffers: the interface between the kernel side and
 * the recorder. C, shared by both, host byte order, never stored.
 *
 * Each program file in bpf/ answers one question and owns its ring. The programs are small and copy
 * data only: names, symbols and matching are left to the recorder and the report. An event is only
 * as long as its stack; one that does not fit into its ring is dropped and counted in the map
 * `counters`. Stacks are written into the event itself. The kernel's table of stack ids was
 * rejected, because colliding ids lose the most frequent stacks.
 */
#ifndef XPU_BPF_EVENTS_H
#define XPU_BPF_EVENTS_H

#include "bpf/python_layout.h"

/* The most frames of one kind from the kernel's walker (kernel.perf_event_max_stack). */
#define XPU_MAX_FRAMES 127
/* The most user frames from the walk in unwind.h. */
#define XPU_MAX_USER_FRAMES 512

/* For frames of all kinds; a Python frame takes two words (python_layout.h). */
#define XPU_STACK_WORDS (XPU_MAX_FRAMES + XPU_MAX_USER_FRAMES + 2 * XPU_MAX_PYTHON_FRAMES)

/* Words of the stack that a walk reads at once. */
#define XPU_STACK_WINDOW 64

/* domain << XPU_DOMAIN_SHIFT | callback id is the marker's second argument (wire::kDomainShift). */
#define XPU_DOMAIN_SHIFT 28

enum xpu_counter {
  XPU_SAMPLES_SEEN,
  XPU_SAMPLES_DROPPED, /* the ring was full */
  XPU_LAUNCHES_SEEN,
  XPU_LAUNCHES_DROPPED, /* the ring was full */
  XPU_PROBE_HITS_SEEN,
  XPU_PROBE_HITS_DROPPED,     /* the ring was full */
  XPU_TASKS_UNMARKED,         /* descendants of the target that could not be marked */
  XPU_OFF_CPU_SEEN,           /* times in which a thread did not run */
  XPU_OFF_CPU_DROPPED,        /* the ring was full */
  XPU_OFF_CPU_UNSUMMED,       /* times in sums that did not fit into the ring */
  XPU_OFF_CPU_WAKERS_DROPPED, /* stacks of waking threads that did not fit into the ring */
  XPU_OFF_CPU_MISSED,         /* switches that the kernel did not report */
  XPU_OFF_CPU_UNFOLLOWED,     /* threads for which the kernel had no memory */
  XPU_COUNTERS,
};

/* How user frames were found: bits of xpu_stack::user_walk. */
#define XPU_WALK_TABLES 1         /* some by an unwind table */
#define XPU_WALK_FRAME_POINTERS 2 /* some by a frame pointer */
#define XPU_WALK_NOT_READY 4      /* some because their table was not ready */

/* Why the walk of user frames ended. */
enum xpu_walk_stop {
  XPU_STOP_COMPLETE,    /* at the outermost frame */
  XPU_STOP_DEPTH,       /* at the limit of frames */
  XPU_STOP_UNREADABLE,  /* stack memory could not be read */
  XPU_STOP_NO_RULE,     /* neither a table nor a usable frame pointer */
  XPU_STOP_UNSUPPORTED, /* a kind of rule that tables do not contain */
  XPU_STOP_NOT_CODE,    /* a return address outside executable mappings */
  XPU_STOP_STUCK,       /* a frame that is not above the previous one */
  XPU_STOP_NOT_WALKED,  /* the kernel walked by frame pointers, which gives no reason */
  XPU_STOP_NO_STACK,    /* the thread has no stack: it is between two programs, or ending */
  XPU_STOP_NOT_CALLED,  /* a return address that follows no call, and is dropped */
  XPU_STOPS,
};

/*
 * `frames` contains kernel_frames addresses, then user_frames addresses, then python_frames pairs
 * of words, each innermost first and without gaps. An event ends with its last frame; it may be
 * longer, so the counts decide. A count of 0 or a negative error of bpf_get_stack means that there
 * is no such stack, which is usual for the kernel part of a sample taken in user mode.
 */
struct xpu_stack {
  __s32 kernel_frames;
  __s32 user_frames;
  __u32 user_walk; /* XPU_WALK_ */
  __u32 user_stop; /* enum xpu_walk_stop */
  __u32 python_frames;
  __u16 python_stop;   /* enum xpu_python_stop */
  __u16 python_on_top; /* the innermost user frame is the loop that runs the innermost functions */
  __u64 frames[XPU_STACK_WORDS];
  /* Used by the walk itself; undefined in events. */
  __u64 registers[16];
  __u64 window[XPU_STACK_WINDOW];
  __u64 process;         /* to which the stack belongs */
  __u64 unwound_sp;      /* of the last frame that was left by its frame pointer */
  __u64 innermost_start; /* where the innermost user frame lies on the stack, if tables show it */
  __u64 innermost_end;
};

/* The most events by which one recording samples. */
#define XPU_MAX_SAMPLED_EVENTS 64

/* Ring `samples`. */
struct xpu_sample {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u32 pid;     /* in the recorder's pid namespace; 0: not visible there */
  __u32 tid;
  __u32 cpu;
  __u32 source; /* number of the event, from 1 */
  __u64 period; /* events, or ns of a clock, since the previous sample */
  struct xpu_stack stack;
};

/* Map `refusals`, by pid: requests for CUPTI by other profilers that were refused. */
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
 * The cookie of a probe contains its number in the lower half; above that, which argument of the
 * function is the GPU kernel, and a flag.
 */
#define XPU_PROBE_ARGUMENT_SHIFT 32
/* For a return probe: hits contain the stack of the caller, to which the function returns. */
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
  __s32 return_value; /* for returns */
  __u64 kernel;       /* for entries: the argument that names the kernel */
  __u64 caller;       /* for entries: the return address; 0: not readable */
  /*
   * At the entry, of the function itself: whether its walk has the caller as its second frame
   * depends on the function's first instruction and on the kernel. At the return: of the caller,
   * or without frames.
   */
  struct xpu_stack stack;
};

/* enum OffCpuState of the capture. */
enum xpu_off_cpu_state {
  XPU_OFF_CPU_UNKNOWN,
  XPU_OFF_CPU_BLOCKED,
  XPU_OFF_CPU_UNINTERRUPTIBLE,
  XPU_OFF_CPU_PREEMPTED,
  XPU_OFF_CPU_CREATED, /* it has not run yet */
  XPU_OFF_CPU_RUNNING, /* only in sums */
  XPU_OFF_CPU_STOPPED, /* by a signal or a debugger */
  XPU_OFF_CPU_STATES,
};

/* enum OffCpuWaker of the capture. */
enum xpu_off_cpu_waker {
  XPU_WAKER_UNKNOWN,
  XPU_WAKER_THREAD,
  XPU_WAKER_INTERRUPT,
};

/* Instead of the number of a system call. */
#define XPU_IN_PAGE_FAULT (-2)

/* Kinds of descriptors without a file, which are not in S_IFMT. */
#define XPU_FILE_EVENT 1  /* eventfd */
#define XPU_FILE_TIMER 2  /* timerfd */
#define XPU_FILE_SIGNAL 3 /* signalfd */

#define XPU_COMM_BYTES 16

struct xpu_waker {
  __u32 kind; /* enum xpu_off_cpu_waker */
  __u32 pid;  /* of a thread, otherwise 0 */
  __u32 tid;
  char name[XPU_COMM_BYTES];
};

/*
 * Map `thread_ends`, filled when recording is switched off: the futexes at which the kernel
 * announces that a thread has ended, where pthread_join waits; the value is the thread.
 */
struct xpu_thread_end {
  __u64 futex;
  __u32 pid;
  __u32 reserved;
};

/* Ring `off_cpu_events`: each event begins with its kind. */
enum xpu_off_cpu_event {
  XPU_OFF_CPU_WAIT,
  XPU_OFF_CPU_WAKE,
};

/* A thread runs again, or the recording ends while it does not run. */
struct xpu_off_cpu_wait {
  __u32 event;
  __u32 state; /* enum xpu_off_cpu_state */
  __u64 start_ns;
  __u64 ready_ns; /* it was woken; 0: not known */
  __u64 end_ns;
  __u32 pid;
  __u32 tid;
  __s32 system_call; /* -1: none, or not known; or XPU_IN_PAGE_FAULT */
  __u32 file_type;   /* of the descriptor that is the argument: S_IFMT of its mode, or XPU_FILE_;
                        0: none */
  __u64 argument;    /* the first one of the system call */
  __u64 ip;          /* if the recorder is to walk its user stack: the registers in user code */
  __u64 sp;
  __u64 bp;
  __u64 run_count; /* then also: how often the thread had run; 0: not known */
  __u32 is_open;   /* it had not ended when recording was switched off */
  __u32 own_tid;   /* if the recorder is to walk: the thread's number in its own pid namespace */
  struct xpu_waker waker;
  struct xpu_stack stack;
};

/* A thread is woken. Sent before its wait, and only with the stack of the waking thread. */
struct xpu_off_cpu_wake {
  __u32 event;
  __u32 tid; /* the woken one */
  __u64 time_ns;
  __u32 waker_pid;
  __u32 reserved;
  struct xpu_stack stack;
};

/* A sum for each state: all running time, and the times off the CPU below the minimum. */
struct xpu_off_cpu_sum {
  __u64 count;
  __u64 duration_ns;
  __u64 ready_ns; /* the part of it after the wake-up */
};

/* Ring `off_cpu_totals`: a thread has ended, or the recording. */
struct xpu_off_cpu_totals {
  __u32 pid;
  __u32 tid;
  __u64 time_ns;
  __u32 is_final; /* the thread has ended, or the recording */
  __u32 reserved;
  struct xpu_off_cpu_sum sums[XPU_OFF_CPU_STATES];
};

#endif
