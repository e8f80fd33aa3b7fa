/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a uprobe program builds an event before it copies the used part of it into its ring. Such a
 * program can be preempted, and another thread can enter it on the same CPU: each run takes a slot
 * of its own. Where all are taken it writes into the ring at the greatest size instead.
 */
#ifndef XPU_BPF_SLOTS_H
#define XPU_BPF_SLOTS_H

#include "kernel_types.h"

#define SLOTS 4

#define DEFINE_SLOTS(event_type)                                               \
  struct slot {                                                                \
    __u32 taken;                                                               \
    event_type event;                                                          \
  };                                                                           \
                                                                               \
  struct {                                                                     \
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                   \
    __uint(max_entries, SLOTS);                                                \
    __type(key, __u32);                                                        \
    __type(value, struct slot);                                                \
  } slots SEC(".maps");                                                        \
                                                                               \
  static __always_inline struct slot* take_slot(void) {                        \
    __u32 i;                                                                   \
                                                                               \
    for (i = 0; i < SLOTS; i++) {                                              \
      __u32 key = i;                                                           \
      struct slot* slot = bpf_map_lookup_elem(&slots, &key);                   \
                                                                               \
      if (slot && __sync_lock_test_and_set(&slot->taken, 1) == 0) return slot; \
    }                                                                          \
    return 0;                                                                  \
  }                                                                            \
                                                                               \
  static __always_inline void give_slot_back(struct slot* slot) {              \
    __sync_lock_test_and_set(&slot->taken, 0);                                 \
  }

#endif
