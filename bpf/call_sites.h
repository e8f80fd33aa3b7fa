/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether calls made the frames of a walk, and where a walk without a rule is at its end anyway.
 *
 * A rule that does not fit its code leads a walk into data of the stack, and each word of it that
 * points into code looks like a frame: OpenBLAS below a table of functions of a Cython module had
 * two hundred callers, one word apart. The return address of a call follows a call instruction.
 * What does not is kept where nothing lies above it: code that starts coroutines writes such
 * addresses. Only the code of files is checked; what a just-in-time compiler makes has ways of its
 * own to call.
 */
#ifndef XPU_BPF_CALL_SITES_H
#define XPU_BPF_CALL_SITES_H

#include "kernel_types.h"
#include "walk.h"

/* Of a near call by register or memory, without prefixes. */
#define LONGEST_CALL 7

/* `call *operand` is ff /2; `code` has at least three bytes. */
static __always_inline bool is_indirect_call(const __u8* code, int bytes) {
  __u8 mode = code[1] >> 6, base = code[1] & 7;
  int length = 2;

  if (code[0] != 0xff || ((code[1] >> 3) & 7) != 2) return false;
  if (mode == 3) return bytes == length;
  if (base == 4) { /* one more byte says which registers */
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

/* Of the sites that were looked at last; a power of two. */
#define CALL_SITE_SLOTS 16384

/*
 * Reading the code before each return address would make a sample a third dearer. Most samples have
 * the return addresses of earlier ones.
 */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, CALL_SITE_SLOTS);
  __type(key, __u32);
  __type(value, __u64);
} call_sites SEC(".maps");

/* What cannot be read is taken for a call. Not static: see find_rule. */
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
 * The last frame, which no call made, stays where its rule says that nothing lies above it. A frame
 * pointer of 0 says the same of goroutines: what started them returns to behind a nop. Not static:
 * see find_rule.
 */
__attribute__((noinline)) int drop_uncalled_frame(struct walk* walk, struct xpu_stack* stack) {
  __u8 before = NOP;
  __u32 place;

  if (!walk || !stack) return 0;
  place = walk->first + walk->count - 1;
  if (place >= XPU_STACK_WORDS) return 0; /* cannot be: for the verifier */
  if (walk->stop == XPU_STOP_COMPLETE) {
    if (!walk->saved) return 0;
    bpf_probe_read_user(&before, sizeof(before), (void*)(stack->frames[place] - 1));
    if (before == NOP) return 0;
  }
  walk->count--;
  walk->stop = XPU_STOP_NOT_CALLED;
  return 0;
}

/* A function that is called by an entry point pushes no more than this. */
#define MAX_WORDS_TO_ENTRY 8

/*
 * A walk that has no rule to go on by, nor a frame pointer: some words above may be the return
 * address into code that has no caller. The functions by which musl starts a program and a thread
 * have no rules and are called from such code. Nothing else puts an address of it onto a stack. Not
 * static: see find_rule.
 */
__attribute__((noinline)) int find_entry_above(struct walk* walk, struct xpu_stack* stack) {
  __u64 sp, word = 0;
  __u32 place;
  int i;

  if (!walk || !stack) return 0;
  sp = walk->stop == XPU_STOP_NO_RULE ? walk->sp : stack->unwound_sp;
  place = walk->first + walk->count;
  if (walk->count >= XPU_MAX_USER_FRAMES || place >= XPU_STACK_WORDS) return 0;
  for (i = 0; i < MAX_WORDS_TO_ENTRY; i++) {
    if (!read_word(walk, stack, sp + i * sizeof(word), &word)) return 0;
    if (look_for_call(word) != CALL_SITE || find_rule(&walk->lookup, word - 1) != FOUND_RULE ||
        walk->lookup.rule.cfa != XPU_CFA_END)
      continue;
    stack->frames[place] = word;
    walk->count++;
    walk->flags |= XPU_WALK_TABLES;
    walk->stop = XPU_STOP_COMPLETE;
    return 0;
  }
  return 0;
}

#endif
