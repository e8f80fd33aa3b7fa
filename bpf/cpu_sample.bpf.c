/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where does the program spend CPU time? Runs at each tick of the sampling event, which the kernel
 * copies into every thread and child of the target, so the program needs no filter.
 */
#include "common.h"
#include "kernel_types.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 8 << 20);
} samples SEC(".maps");

/*
 * One per CPU is enough: the kernel runs one perf_event program at a time on a CPU (it counts
 * bpf_prog_active) and does not preempt it.
 */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct xpu_sample);
} scratch SEC(".maps");

SEC("perf_event")
int cpu_sample(void* ctx) {
  __u32 zero = 0;
  struct xpu_sample* sample = bpf_map_lookup_elem(&scratch, &zero);
  struct identity who;
  __u32 size;

  if (!sample) return 0;
  count(XPU_SAMPLES_SEEN);
  who = current_identity();
  sample->time_ns = bpf_ktime_get_ns();
  sample->pid = who.pid;
  sample->tid = who.tid;
  sample->cpu = bpf_get_smp_processor_id();
  sample->source = 1;
  size = __builtin_offsetof(struct xpu_sample, stack) + take_stack(ctx, &sample->stack, 1);
  if (bpf_ringbuf_output(&samples, sample, size, BPF_RB_NO_WAKEUP)) count(XPU_SAMPLES_DROPPED);
  return 0;
}
