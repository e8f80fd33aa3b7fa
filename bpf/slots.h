/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory in which a uprobe program builds an event before it copies the used part into its ring.
 * Such a program can be preempted, and another thread can then run it on the same CPU, so each run
 * takes a slot of its own. If all slots are taken, it writes directly to the ring, at the maximum
 * size.
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
