/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The result of functions called by bpf_loop. */
#ifndef XPU_BPF_LOOP_H
#define XPU_BPF_LOOP_H

/*
 * 1 ends the loop, 0 continues. The verifier must see that the result is one of them, and does not
 * look into a non-static function that returns it. The compiler does, and would omit the mask.
 */
static __always_inline long ends_loop(int result) {
  asm volatile("" : "+r"(result));
  return result & 1;
}

#endif
