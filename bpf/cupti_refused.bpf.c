/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Did another profiler in the program ask for CUPTI, which we hold? Runs when cuptiSubscribe
 * returns; the probe is on the file, so it hears of every process that uses this libcupti.
 */
#include "common.h"
#include "kernel_types.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

#define CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED 39

/* Refusals by process, as the recorder's namespace sees it. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, __u64);
} refusals SEC(".maps");

SEC("uretprobe")
int cupti_refused(struct pt_regs* ctx) {
  struct identity who;
  __u64 zero = 0;
  __u64* refused;

  if ((int)ctx->ax != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) return 0;
  who = current_identity();
  bpf_map_update_elem(&refusals, &who.pid, &zero, BPF_NOEXIST);
  refused = bpf_map_lookup_elem(&refusals, &who.pid);
  if (refused) __sync_fetch_and_add(refused, 1);
  return 0;
}
