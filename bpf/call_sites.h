/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether calls made the frames of a walk, and where a walk without a rule is at its end anyway.
 *
 * A rule that does not fit its code leads a walk into data of the stack. Where that data is a table
 * of functions, which a module of Cython has, each word of it looks like a frame: a hundred of
 * them, one word apart, called complete when the limit was not reached. A return address that was
 * called follows a call instruction. Reading the code before every return address would make a
 * sample a third dearer, so it is read where frames of one size repeat, as they do in recursion.
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

/* As many frames of one size are looked at no further. */
#define MAX_SAME_STRIDES 7

/*
 * The frames that are there end with some of one size, and so does the next, which is not there
 * yet. True: it was not called; those before it that were not either are taken off. Not static: see
 * find_rule.
 */
__attribute__((noinline)) int cut_invented_frames(struct walk* walk, struct xpu_stack* stack) {
  __u32 place;
  int i;

  if (!walk || !stack || look_for_call(walk->ip) != NO_CALL_SITE) return false;
  walk->stop = XPU_STOP_NOT_CALLED;
  for (i = 0; i <= MAX_SAME_STRIDES && walk->count > 1; i++) {
    place = walk->first + walk->count - 1;
    if (place >= XPU_STACK_WORDS || look_for_call(stack->frames[place]) == CALL_SITE) break;
    walk->count--;
  }
  return true;
}

/* After a step from a frame at `sp`: whether the walk ends because calls did not make its frames. */
static __always_inline bool is_invented(struct walk* walk, struct xpu_stack* stack, __u64 sp) {
  __u64 stride = walk->sp - sp;

  if (stride != stack->stride) {
    stack->stride = stride;
    stack->same_strides = 0;
    return false;
  }
  if (++stack->same_strides < MAX_SAME_STRIDES) return false;
  stack->same_strides = 0;
  return !walk->exact && cut_invented_frames(walk, stack);
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
