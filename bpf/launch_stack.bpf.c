/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which code launched this GPU work? Runs at each hit of the injected library's marker function
 * (cupti_inject/wire.h), whose arguments identify the launch.
 */
#include "common.h"
#include "kernel_types.h"
#include "slots.h"
#include "stack.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

/*
 * The probe is on the file, so programs of all recorders hit it. This is the recorder's own number.
 */
const volatile __u64 session = 0;

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 16 << 20);
} launches SEC(".maps");

DEFINE_SLOTS(struct xpu_launch)

/* Returns the size of the event. */
static __always_inline __u32 fill(struct pt_regs* ctx, struct xpu_launch* launch) {
  struct user_registers registers = {ctx->ip, ctx->sp, ctx->bp, AT_PROBE};
  struct identity who = current_identity();

  launch->time_ns = bpf_ktime_get_ns();
  launch->pid = who.pid;
  launch->tid = who.tid;
  launch->cpu = bpf_get_smp_processor_id();
  launch->correlation_id = ctx->di;
  launch->domain = (__u32)ctx->si >> XPU_DOMAIN_SHIFT;
  launch->callback_id = (__u32)ctx->si & ((1u << XPU_DOMAIN_SHIFT) - 1);
  launch->instance = ctx->dx;
  if (walk_by_tables) keep_registers(ctx, &launch->stack);
  return __builtin_offsetof(struct xpu_launch, stack) +
         take_stack(ctx, &registers, who, &launch->stack, 0);
}

SEC("uprobe")
int launch_stack(struct pt_regs* ctx) {
  struct xpu_launch* launch;
  struct slot* slot;
  __u32 size;

  if (ctx->cx != session) return 0;
  count(XPU_LAUNCHES_SEEN);
  slot = take_slot();
  if (slot) {
    size = fill(ctx, &slot->event);
    if (bpf_ringbuf_output(&launches, &slot->event, size, BPF_RB_NO_WAKEUP))
      count(XPU_LAUNCHES_DROPPED);
    give_slot_back(slot);
    return 0;
  }
  launch = bpf_ringbuf_reserve(&launches, sizeof(*launch), 0);
  if (!launch) {
    count(XPU_LAUNCHES_DROPPED);
    return 0;
  }
  fill(ctx, launch);
  bpf_ringbuf_submit(launch, BPF_RB_NO_WAKEUP);
  return 0;
}

/* An empty program: the recorder times probes at the marker's offsets with it. */
SEC("uprobe")
int marker_timing(void* ctx __attribute__((unused))) { return 0; }
