/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Was another profiler in the program refused CUPTI, which the injected library holds? Runs when
 * cuptiSubscribe returns. The probe is on the file, so it sees every process that uses this
 * libcupti.
 */
#include "common.h"
#include "kernel_types.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

#define CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED 39

/*
 * In CUDA 13 cuptiSubscribe calls cuptiSubscribe_v2, and both are probed, so one refusal returns
 * twice.
 */
#define SAME_REFUSAL_NS 1000000

/* Refusals by pid in the recorder's namespace. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, struct xpu_refusal);
} refusals SEC(".maps");

SEC("uretprobe")
int cupti_refused(struct pt_regs* ctx) {
  struct xpu_refusal none = {};
  struct xpu_refusal* refusal;
  struct identity who;
  __u64 now_ns;

  if ((int)ctx->ax != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) return 0;
  who = current_identity();
  now_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&refusals, &who.pid, &none, BPF_NOEXIST);
  refusal = bpf_map_lookup_elem(&refusals, &who.pid);
  if (!refusal) return 0;
  if (refusal->last_tid != who.tid || now_ns - refusal->last_ns > SAME_REFUSAL_NS)
    __sync_fetch_and_add(&refusal->count, 1);
  refusal->last_tid = who.tid;
  refusal->last_ns = now_ns;
  return 0;
}
