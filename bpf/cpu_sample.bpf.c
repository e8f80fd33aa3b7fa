/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where does the program spend CPU time, or whatever else the sampling event counts? Runs at each
 * tick of the event. Two kinds of events tick:
 *
 * Events on a CPU tick for whatever runs there; the program keeps what belongs to the recording.
 * Clocks with few samples a second are of this kind, and all events in a recording of running
 * processes.
 *
 * The kernel copies other events into every thread and child of the target, each of which then
 * counts for itself. Clocks are of this kind where clocks on CPUs are not available, or would tick
 * too often on CPUs that are idle or run something else. The kernel restarts their period in each
 * new thread: a thread that ends before its first tick is never sampled, and at 99 Hz a shell
 * script or a make consists of such threads. So such a clock ticks `ticks_per_sample` times as
 * often, and one of that many ticks on a CPU is taken as the sample: a random one, so that no
 * rhythm of the program or the scheduler stays in step with it.
 */
#include "common.h"
#include "kernel_types.h"
#include "recorded.h"
#include "stack.h"
#include "watched.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

/* Set by the recorder before loading; indexed by event, from 1. */
const volatile __u32 ticks_per_sample[XPU_MAX_SAMPLED_EVENTS + 1];
const volatile bool is_of_cpu[XPU_MAX_SAMPLED_EVENTS + 1];

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 8 << 20);
} samples SEC(".maps");

struct ticks {
  __u32 tick;  /* of the current ticks_per_sample */
  __u32 taken; /* the tick that becomes the sample */
};

struct cpu_state {
  struct ticks ticks[XPU_MAX_SAMPLED_EVENTS + 1]; /* indexed by event */
  struct xpu_sample sample;
};

/*
 * One per CPU is enough: the kernel runs only one perf_event program at a time on a CPU (it counts
 * bpf_prog_active) and does not preempt it.
 */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct cpu_state);
} cpu_states SEC(".maps");

/*
 * Which sampling event ticked; 0: an unknown one. The recorder numbers them in wakeup_events, which
 * is otherwise used only if samples are read from a buffer of the event. An inherited event keeps
 * this value, but not its cookie.
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
 * A child has mapped what its parent has mapped. This makes it known before its first instruction,
 * and before the recorder learns of it.
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

/* At an exec: what the recorder knows of the process belongs to the previous program. */
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

/* Events of the target never tick anywhere else. */
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
