/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checks whether calls made the frames of a walk, and whether a walk without a rule has reached its
 * end.
 *
 * A rule that does not match its code leads a walk into data on the stack, and each word there that
 * points into code looks like a frame: OpenBLAS, below a table of functions of a Cython module, had
 * two hundred callers, one word apart. A real return address follows a call instruction. An address
 * that does not is kept if nothing lies above it, because code that starts coroutines writes such
 * addresses. Only code in files is checked: just-in-time compilers call in ways of their own.
 */
#ifndef XPU_BPF_CALL_SITES_H
#define XPU_BPF_CALL_SITES_H

#include "kernel_types.h"
#include "walk.h"

/* Of a near call through a register or memory, without prefixes. */
#define LONGEST_CALL 7

/* `call *operand` is ff /2; `code` has at least three bytes. */
static __always_inline bool is_indirect_call(const __u8* code, int bytes) {
  __u8 mode = code[1] >> 6, base = code[1] & 7;
  int length = 2;

  if (code[0] != 0xff || ((code[1] >> 3) & 7) != 2) return false;
  if (mode == 3) return bytes == length;
  if (base == 4) { /* one more byte selects the registers */
    base = code[2] & 7;
    length++;
  }
  if (mode == 1) length += 1;
  if (mode == 2 || (mode == 0 && base == 5)) length += 4;
  return bytes == length;
}

enum call_site {
  CALL_SITE,
  NO_CALL_SITE,
  UNREADABLE_SITE,
};

/* Not static: see find_rule. */
__attribute__((noinline)) int look_for_call(__u64 return_address) {
  __u8 code[LONGEST_CALL + 1] = {};
  int bytes;

  if (bpf_probe_read_user(code, LONGEST_CALL, (void*)(return_address - LONGEST_CALL)))
    return UNREADABLE_SITE;
  if (code[LONGEST_CALL - 5] == 0xe8) return CALL_SITE;
  for (bytes = 2; bytes <= LONGEST_CALL; bytes++) {
    if (is_indirect_call(code + LONGEST_CALL - bytes, bytes)) return CALL_SITE;
  }
  return NO_CALL_SITE;
}

/* The number of recently examined call sites that are kept; a power of two. */
#define CALL_SITE_SLOTS 16384

/*
 * Reading the code before each return address would make a sample a third more expensive. Most
 * samples contain return addresses of earlier ones.
 */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, CALL_SITE_SLOTS);
  __type(key, __u32);
  __type(value, __u64);
} call_sites SEC(".maps");

/* Code that cannot be read counts as a call. Not static: see find_rule. */
__attribute__((noinline)) int follows_call(__u64 return_address, __u64 process) {
  __u64 site = return_address ^ process << 48 ^ process << 16;
  __u32 slot = (site * 0x9e3779b97f4a7c15) >> 50;
  __u64* known = bpf_map_lookup_elem(&call_sites, &slot);

  if (known && *known == site) return true;
  if (look_for_call(return_address) == NO_CALL_SITE) return false;
  if (known) *known = site;
  return true;
}

static __always_inline bool is_code_of_file(const struct walk* walk, enum found found) {
  return found == FOUND_RULE || (found == FOUND_CODE && walk->lookup.last.page_count);
}

#define NOP 0x90

/*
 * Drops the last frame if no call made it, unless its rule says that it is the outermost one. A
 * frame pointer of 0 says the same for goroutines, whose starting code returns to an address after
 * a nop. Not static: see find_rule.
 */
__attribute__((noinline)) int drop_uncalled_frame(struct walk* walk, struct xpu_stack* stack) {
  __u8 before = NOP;
  __u32 slot;

  if (!walk || !stack) return 0;
  slot = walk->first + walk->count - 1;
  if (slot >= XPU_STACK_WORDS) return 0; /* impossible; for the verifier */
  if (walk->stop == XPU_STOP_COMPLETE) {
    if (!walk->saved) return 0;
    bpf_probe_read_user(&before, sizeof(before), (void*)(stack->frames[slot] - 1));
    if (before == NOP) return 0;
  }
  walk->count--;
  walk->stop = XPU_STOP_NOT_CALLED;
  return 0;
}

/* A function that an entry point calls pushes at most this many words. */
#define MAX_WORDS_TO_ENTRY 8

/*
 * Called when a walk has neither a rule nor a frame pointer: one of the next words above may be a
 * return address into code that has no caller. The functions by which musl starts programs and
 * threads have no rules and are called from such code. Nothing else puts such an address on a
 * stack. Not static: see find_rule.
 */
__attribute__((noinline)) int find_entry_above(struct walk* walk, struct xpu_stack* stack) {
  __u64 sp, word = 0;
  __u32 slot;
  int i;

  if (!walk || !stack) return 0;
  sp = walk->stop == XPU_STOP_NO_RULE ? walk->sp : stack->unwound_sp;
  if (walk->count >= XPU_MAX_USER_FRAMES) return 0;
  for (i = 0; i < MAX_WORDS_TO_ENTRY; i++) {
    if (!read_word(walk, stack, sp + i * sizeof(word), &word)) return 0;
    if (look_for_call(word) != CALL_SITE || find_rule(&walk->lookup, word - 1) != FOUND_RULE ||
        walk->lookup.rule.cfa != XPU_CFA_END)
      continue;
    slot = walk->first + walk->count;
    /* Impossible; for the verifier, which forgets it over a call up to Linux 6.1. */
    if (slot >= XPU_STACK_WORDS) return 0;
    stack->frames[slot] = word;
    walk->count++;
    walk->flags |= XPU_WALK_TABLES;
    walk->stop = XPU_STOP_COMPLETE;
    return 0;
  }
  return 0;
}

#endif
