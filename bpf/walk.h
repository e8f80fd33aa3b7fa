/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of a walk over a user stack, and how the walk reads that stack. */
#ifndef XPU_BPF_WALK_H
#define XPU_BPF_WALK_H

#include "bpf/events.h"
#include "kernel_types.h"
#include "unwind_rules.h"

/* By DWARF's number of a register. */
#define REGISTERS 16

/* The part of the stack that was read last, and the requested word. */
struct window {
  __u64 start;
  __u64 bytes; /* number of valid bytes in xpu_stack::window */
  __u64 value;
};

struct walk {
  __u64 ip;
  __u64 sp;
  __u64 bp;
  struct lookup lookup;
  __u32 first; /* index of the first user frame in stack->frames */
  __u32 count;
  __u32 stop;
  __u8 flags;
  __u8 exact;    /* ip is an instruction, otherwise a return address */
  __u8 saved;    /* bp was restored by a frame pointer */
  __u8 uncalled; /* the last frame is not at a return address of a call */
  struct window window;
};

static __always_inline bool read_user(__u64 address, __u64* value) {
  return bpf_probe_read_user(value, sizeof(*value), (void*)address) == 0;
}

#define WINDOW_BYTES (XPU_STACK_WINDOW * sizeof(__u64))
/* Saved registers lie below the return address, which is read first. */
#define BELOW_WINDOW 64
#define USER_PAGE_BYTES 4096

/* Reads a part of the page that contains `address`. */
static __always_inline bool fill_window(struct window* window, struct xpu_stack* stack,
                                        __u64 address) {
  __u64 into = address & (USER_PAGE_BYTES - 1);
  __u64 start = address - (into < BELOW_WINDOW ? into : BELOW_WINDOW);
  __u64 bytes = USER_PAGE_BYTES - (start & (USER_PAGE_BYTES - 1));

  if (bytes > WINDOW_BYTES) bytes = WINDOW_BYTES;
  window->bytes = 0;
  if (bpf_probe_read_user(stack->window, bytes, (void*)start)) return false;
  window->start = start;
  window->bytes = bytes;
  return true;
}

/*
 * Reading user memory costs the same for all sizes, so adjacent words are read together. Not
 * static: see find_rule. Returns whether the word could be read.
 */
__attribute__((noinline)) int read_stack(struct window* window, struct xpu_stack* stack,
                                         __u64 address) {
  __u64 index;

  if (!window || !stack) return 0;
  if (address & 7) return read_user(address, &window->value);
  if (address - window->start >= window->bytes && !fill_window(window, stack, address)) return 0;
  index = (address - window->start) / sizeof(__u64);
  if (index >= XPU_STACK_WINDOW) return 0; /* impossible; for the verifier */
  window->value = stack->window[index];
  return 1;
}

static __always_inline bool read_word(struct walk* walk, struct xpu_stack* stack, __u64 address,
                                      __u64* value) {
  if (!read_stack(&walk->window, stack, address)) return false;
  *value = walk->window.value;
  return true;
}

#endif
