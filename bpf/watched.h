/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The processes in a recording of running processes, by their pids in the recorder's namespace. The
 * recorder adds the first ones, watched.bpf.c their descendants.
 */
#ifndef XPU_BPF_WATCHED_H
#define XPU_BPF_WATCHED_H

#include "bpf/watched_layout.h"
#include "kernel_types.h"

/* Set by the recorder before loading: enum xpu_watch. The map is only used for the second value. */
const volatile __u32 watch = XPU_WATCH_DESCENDANTS;

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, XPU_MAX_WATCHED);
  __type(key, __u32);
  __type(value, __u32);
} watched SEC(".maps");

/* False only for events and probes that other processes trigger too. */
static __always_inline bool is_watched(__u32 pid) {
  return watch != XPU_WATCH_PROCESSES || bpf_map_lookup_elem(&watched, &pid);
}

#endif
