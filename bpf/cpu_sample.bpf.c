/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where does the program spend CPU time, or whatever else the sampling event counts? Runs at each
 * tick of it. Two kinds of events tick:
 *
 * Those of a CPU do whoever runs there; the program takes what belongs to the recording. So do
 * clocks of few samples a second, and all events of a recording of processes that run already.
 *
 * Others the kernel copies into every thread and child of the target, each of which then counts its
 * own. Clocks are as these where those of CPUs cannot be had, or would tick too often where others
 * run or nothing does. The kernel starts their period anew in each new thread: one that ends before
 * its first tick is never sampled, and at 99 Hz a shell script or a make is made of nothing else.
 * So such a clock ticks `ticks_per_sample` times as often, and of that many ticks on a CPU one is
 * taken: a random one, so that no rhythm of the program or of the scheduler falls in step with it.
 */
#include "common.h"
#include "kernel_types.h"
#include "recorded.h"
#include "stack.h"
#include "watched.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

/* Set by the recorder before loading; by event, from 1. */
const volatile __u32 ticks_per_sample[XPU_MAX_SAMPLED_EVENTS + 1];
const volatile bool is_of_cpu[XPU_MAX_SAMPLED_EVENTS + 1];

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 8 << 20);
} samples SEC(".maps");

struct ticks {
  __u32 tick;  /* of the current ticks_per_sample */
  __u32 taken; /* which of them is the sample */
};

struct cpu_state {
  struct ticks ticks[XPU_MAX_SAMPLED_EVENTS + 1]; /* by event */
  struct xpu_sample sample;
};

/*
 * One per CPU is enough: the kernel runs one perf_event program at a time on a CPU (it counts
 * bpf_prog_active) and does not preempt it.
 */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct cpu_state);
} cpu_states SEC(".maps");

/*
 * Which of the sampling events ticked, 0: none that is known. The recorder numbers them in
 * wakeup_events, which else has a meaning only where samples are read from a buffer of the event's
 * own. Of what could tell, it is what an inherited event has too: its cookie is not copied.
 */
static __always_inline __u32 event_number(struct bpf_perf_event_data* ctx) {
  __u32 number = BPF_CORE_READ((struct bpf_perf_event_data_kern*)ctx, event, attr.wakeup_events);

  return number <= XPU_MAX_SAMPLED_EVENTS ? number : 0;
}

static __always_inline int is_sample(struct ticks* ticks, __u32 per_sample) {
  int result;

  if (per_sample <= 1) return 1;
  if (ticks->tick == 0) ticks->taken = bpf_get_prandom_u32() % per_sample;
  result = ticks->tick == ticks->taken;
  if (++ticks->tick >= per_sample) ticks->tick = 0;
  return result;
}

static __always_inline void take_registers(struct bpf_perf_event_data* ctx,
                                           struct user_registers* registers,
                                           struct xpu_stack* stack) {
  registers->ip = ctx->regs.ip;
  registers->sp = ctx->regs.sp;
  registers->bp = ctx->regs.bp;
  if (!walk_by_tables) return;
  if (is_kernel_address(registers->ip)) {
    take_entry_registers(registers, stack);
  } else {
    keep_registers(&ctx->regs, stack);
  }
}

/*
 * A child has mapped what its parent has: it is known before its first instruction, and before the
 * recorder hears of it.
 */
SEC("tp_btf/sched_process_fork")
int follow_fork(__u64* ctx) {
  struct task_struct* parent = (void*)ctx[0];
  struct task_struct* child = (void*)ctx[1];
  struct xpu_code* code;
  __u32 parent_pid, pid;

  mark_child(parent, child);
  if (!walk_by_tables || BPF_CORE_READ(child, group_leader) != child) return 0;
  parent_pid = number_in_namespace(BPF_CORE_READ(parent, group_leader, thread_pid));
  code = bpf_map_lookup_elem(&unwind_processes, &parent_pid);
  if (!code) return 0;
  pid = number_in_namespace(BPF_CORE_READ(child, thread_pid));
  if (pid) bpf_map_update_elem(&unwind_processes, &pid, code, 0);
  return 0;
}

/* A program begins: what the recorder knows of the process is of the one before. */
SEC("tp_btf/sched_process_exec")
int follow_exec(__u64* ctx) {
  struct task_struct* task = (void*)ctx[0];
  const struct xpu_code code = {};
  __u32 pid = number_in_namespace(BPF_CORE_READ(task, group_leader, thread_pid));

  mark_program();
  if (!walk_by_tables || !bpf_map_lookup_elem(&unwind_processes, &pid)) return 0;
  bpf_map_update_elem(&unwind_processes, &pid, &code, 0);
  return 0;
}

/* Events of the target alone tick in nothing else. */
static __always_inline bool is_wanted(__u32 number) {
  if (!is_of_cpu[number]) return true;
  return watch == XPU_WATCH_DESCENDANTS ? is_recorded() : is_watched(current_identity().pid);
}

SEC("perf_event")
int cpu_sample(struct bpf_perf_event_data* ctx) {
  __u32 zero = 0;
  struct cpu_state* state = bpf_map_lookup_elem(&cpu_states, &zero);
  struct xpu_sample* sample;
  struct user_registers registers = {};
  struct identity who;
  __u32 number = event_number(ctx);
  __u32 size;

  if (!state || number == 0) return 0;
  if (!is_sample(&state->ticks[number], ticks_per_sample[number])) return 0;
  if (!is_wanted(number)) return 0;
  who = current_identity();
  count(XPU_SAMPLES_SEEN);
  sample = &state->sample;
  sample->time_ns = bpf_ktime_get_ns();
  sample->pid = who.pid;
  sample->tid = who.tid;
  sample->cpu = bpf_get_smp_processor_id();
  sample->source = number;
  sample->period = ctx->sample_period;
  take_registers(ctx, &registers, &sample->stack);
  size = __builtin_offsetof(struct xpu_sample, stack) +
         take_stack(ctx, &registers, who, &sample->stack, 1);
  if (bpf_ringbuf_output(&samples, sample, size, BPF_RB_NO_WAKEUP)) count(XPU_SAMPLES_DROPPED);
  return 0;
}
