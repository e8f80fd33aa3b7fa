/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What functions called by bpf_loop return. */
#ifndef XPU_BPF_LOOP_H
#define XPU_BPF_LOOP_H

/*
 * 1 ends the loop, 0 goes on. The verifier wants to see that it is one of them, and does not look
 * into a function that is not static, where it comes from; the compiler does, and would leave out
 * the mask.
 */
static __always_inline long ends_loop(int result) {
  asm volatile("" : "+r"(result));
  return result & 1;
}

#endif
