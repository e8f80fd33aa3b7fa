/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which processes the programs record. C, shared by kernel and recorder. */
#ifndef XPU_BPF_WATCHED_LAYOUT_H
#define XPU_BPF_WATCHED_LAYOUT_H

enum xpu_watch {
  XPU_WATCH_DESCENDANTS, /* those of the program that the recorder starts */
  XPU_WATCH_PROCESSES,   /* those in the map `watched` */
  XPU_WATCH_ALL,
};

#define XPU_MAX_WATCHED (16u << 10)

/* The state of a process in the map `watched`. */
enum xpu_watched {
  XPU_WATCHED_ENDED, /* its last records are still being read */
  XPU_WATCHED_RUNS,
};

/* The state of a thread in the map `recorded`. */
enum xpu_mark {
  XPU_MARK_BEFORE_EXEC, /* still runs the recorder's code */
  XPU_MARK_IN_PROGRAM,
  XPU_MARK_TAKEN_OUT, /* by the kernel, with all its descendants */
};

#endif
