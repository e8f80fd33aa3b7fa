/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whom the programs record. C, shared by kernel and recorder. */
#ifndef XPU_BPF_WATCHED_LAYOUT_H
#define XPU_BPF_WATCHED_LAYOUT_H

enum xpu_watch {
  XPU_WATCH_DESCENDANTS, /* of the program that the recorder starts */
  XPU_WATCH_PROCESSES,   /* those in the map `watched` */
  XPU_WATCH_ALL,
};

#define XPU_MAX_WATCHED (16u << 10)

/* What the map `watched` has of a process. */
enum xpu_watched {
  XPU_WATCHED_ENDED, /* what it left behind is still being read */
  XPU_WATCHED_RUNS,
};

/* What the map `recorded` has of a thread. */
enum xpu_mark {
  XPU_MARK_BEFORE_EXEC, /* in the recorder's own code */
  XPU_MARK_IN_PROGRAM,
  XPU_MARK_TAKEN_OUT, /* by the kernel, with all that it starts */
};

#endif
