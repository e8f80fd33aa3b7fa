/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which code reached this function? Runs at probes that the user requests and, if nothing may be
 * loaded into the program, at entries and returns of the launch functions in the CUDA libraries.
 * The report matches entries with returns, and calls of the driver with the runtime call around
 * them, by thread and time.
 */
#include "common.h"
#include "kernel_types.h"
#include "recorded.h"
#include "slots.h"
#include "stack.h"
#include "watched.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 16 << 20);
} probe_hits SEC(".maps");

/* While set, hits are not recorded. */
__u32 paused = 0;

DEFINE_SLOTS(struct xpu_probe_hit)

SEC("tp_btf/sched_process_fork")
int inherit_mark(__u64* ctx) {
  mark_child((void*)ctx[0], (void*)ctx[1]);
  return 0;
}

SEC("tp_btf/sched_process_exec")
int begin_program(__u64* ctx __attribute__((unused))) {
  mark_program();
  return 0;
}

/* The probes are on files, so every program that uses these files hits them. */
static __always_inline int is_of_target(void) {
  if (watch == XPU_WATCH_ALL) return 1;
  if (watch == XPU_WATCH_PROCESSES) return is_watched(current_identity().pid);
  return is_recorded();
}

static __always_inline int is_wanted(void) { return !paused && is_of_target(); }

static __always_inline struct identity fill_common(struct xpu_probe_hit* hit, __u64 cookie) {
  struct identity who = current_identity();

  hit->time_ns = bpf_ktime_get_ns();
  hit->pid = who.pid;
  hit->tid = who.tid;
  hit->cpu = bpf_get_smp_processor_id();
  hit->probe = cookie;
  return who;
}

static __always_inline __u64 kernel_argument(struct pt_regs* ctx, __u64 cookie) {
  __u64 first = ctx->di;
  __u64 second = ctx->si;

  /* Otherwise the compiler selects between their addresses, which the verifier does not allow. */
  asm volatile("" : "+r"(first), "+r"(second));
  switch (cookie >> XPU_PROBE_ARGUMENT_SHIFT) {
    case XPU_PROBE_FIRST_ARGUMENT:
      return first;
    case XPU_PROBE_SECOND_ARGUMENT:
      return second;
    default:
      return 0;
  }
}

/* Returns the size of the event. */
static __always_inline __u32 fill_entry(struct pt_regs* ctx, struct xpu_probe_hit* hit) {
  struct user_registers registers = {ctx->ip, ctx->sp, ctx->bp, AT_PROBE};
  __u64 cookie = bpf_get_attach_cookie(ctx);
  struct identity who = fill_common(hit, cookie);

  hit->is_return = 0;
  hit->return_value = 0;
  hit->kernel = kernel_argument(ctx, cookie);
  /* A probe may be after endbr64, which does not change the stack. */
  if (bpf_probe_read_user(&hit->caller, sizeof(hit->caller), (void*)ctx->sp)) hit->caller = 0;
  if (walk_by_tables) keep_registers(ctx, &hit->stack);
  return __builtin_offsetof(struct xpu_probe_hit, stack) +
         take_stack(ctx, &registers, who, &hit->stack, 0);
}

/* Returns the size of the event. */
static __always_inline __u32 fill_return(struct pt_regs* ctx, struct xpu_probe_hit* hit,
                                         __u64 cookie) {
  struct user_registers registers = {ctx->ip, ctx->sp, ctx->bp, AT_PROBE};
  struct identity who = fill_common(hit, cookie);

  hit->is_return = 1;
  hit->return_value = ctx->ax;
  hit->kernel = 0;
  hit->caller = 0;
  if (cookie & XPU_PROBE_STACK_AT_RETURN) {
    if (walk_by_tables) keep_registers(ctx, &hit->stack);
    return __builtin_offsetof(struct xpu_probe_hit, stack) +
           take_stack(ctx, &registers, who, &hit->stack, 0);
  }
  hit->stack.kernel_frames = 0;
  hit->stack.user_frames = 0;
  hit->stack.user_walk = 0;
  hit->stack.user_stop = XPU_STOP_NOT_WALKED;
  hit->stack.python_frames = 0;
  hit->stack.python_stop = XPU_PYTHON_COMPLETE;
  hit->stack.python_on_top = 0;
  return __builtin_offsetof(struct xpu_probe_hit, stack.frames);
}

/*
 * For probes in the kernel; `regs`: of the context, null if it has none. Returns the size of the
 * event.
 */
static __always_inline __u32 fill_in_kernel(void* ctx, struct pt_regs* regs, int is_return,
                                            struct xpu_probe_hit* hit) {
  struct user_registers registers = {};
  struct identity who = fill_common(hit, bpf_get_attach_cookie(ctx));

  hit->is_return = is_return;
  hit->return_value = is_return ? regs->ax : 0;
  hit->kernel = 0;
  hit->caller = 0;
  if (walk_by_tables) take_entry_registers(&registers, &hit->stack);
  return __builtin_offsetof(struct xpu_probe_hit, stack) +
         take_stack(ctx, &registers, who, &hit->stack, 1);
}

/* Builds the hit with `fill`, in a slot, or in the ring at its maximum size. */
#define RECORD_HIT(fill)                                                \
  do {                                                                  \
    struct xpu_probe_hit* hit;                                          \
    struct slot* slot;                                                  \
    __u32 size;                                                         \
                                                                        \
    if (!is_wanted()) return 0;                                         \
    count(XPU_PROBE_HITS_SEEN);                                         \
    slot = take_slot();                                                 \
    if (slot) {                                                         \
      hit = &slot->event;                                               \
      size = fill;                                                      \
      if (bpf_ringbuf_output(&probe_hits, hit, size, BPF_RB_NO_WAKEUP)) \
        count(XPU_PROBE_HITS_DROPPED);                                  \
      give_slot_back(slot);                                             \
      return 0;                                                         \
    }                                                                   \
    hit = bpf_ringbuf_reserve(&probe_hits, sizeof(*hit), 0);            \
    if (!hit) {                                                         \
      count(XPU_PROBE_HITS_DROPPED);                                    \
      return 0;                                                         \
    }                                                                   \
    size = fill;                                                        \
    bpf_ringbuf_submit(hit, BPF_RB_NO_WAKEUP);                          \
  } while (0)

SEC("uprobe")
int probe_entry(struct pt_regs* ctx) {
  RECORD_HIT(fill_entry(ctx, hit));
  return 0;
}

SEC("uretprobe")
int probe_return(struct pt_regs* ctx) {
  RECORD_HIT(fill_return(ctx, hit, bpf_get_attach_cookie(ctx)));
  return 0;
}

/*
 * The same for sessions, where the kernel also runs this at the entry to ask whether to probe the
 * return: with result 1 the return address stays unchanged.
 */
SEC("uprobe")
int probe_session(struct pt_regs* ctx) {
  if (ctx->ip == bpf_get_func_ip(ctx)) return !is_of_target();
  RECORD_HIT(fill_return(ctx, hit, bpf_get_attach_cookie(ctx)));
  return 0;
}

SEC("kprobe")
int kernel_entry(struct pt_regs* ctx) {
  RECORD_HIT(fill_in_kernel(ctx, ctx, 0, hit));
  return 0;
}

SEC("kretprobe")
int kernel_return(struct pt_regs* ctx) {
  RECORD_HIT(fill_in_kernel(ctx, ctx, 1, hit));
  return 0;
}

SEC("tracepoint")
int trace_point(void* ctx) {
  RECORD_HIT(fill_in_kernel(ctx, 0, 0, hit));
  return 0;
}
