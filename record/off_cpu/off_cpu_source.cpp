#include "record/off_cpu/off_cpu_source.h"

#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include <linux/membarrier.h>
#include <off_cpu.skel.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/base/clock.h"
#include "record/kernel/bpf_support.h"
#include "record/kernel/probe_links.h"
#include "record/process/watched_processes.h"
#include "record/unwind/stack_frames.h"
#include "record/unwind/unwinder.h"

namespace xpu {
namespace {

static_assert(static_cast<int>(OffCpuState::kBlocked) == XPU_OFF_CPU_BLOCKED);
static_assert(static_cast<int>(OffCpuState::kUninterruptible) == XPU_OFF_CPU_UNINTERRUPTIBLE);
static_assert(static_cast<int>(OffCpuState::kPreempted) == XPU_OFF_CPU_PREEMPTED);

// Returns when all BPF programs that are running on other CPUs have ended.
void WaitForPrograms() { ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0); }

}  // namespace

class OffCpuSource::Impl {
 public:
  Impl() : stack_(KernelStackLimit()) {}

  Status Open(const SourceContext& context);
  Status Load(const SourceContext& context);
  Status Attach(bpf_program* program);
  void SetOn(bool on) const { __atomic_store_n(&program_->bss->is_on, on, __ATOMIC_RELEASE); }
  void TakeWait(std::span<const std::byte> bytes);
  void WriteSums(EventSink& sink);
  void CountLosses(LossLedger& losses, bool is_over);

  Handle<off_cpu_bpf, off_cpu_bpf::destroy> program_;
  std::vector<BpfLink> links_;
  std::unique_ptr<BpfRing> ring_;
  StackFrames stack_;
  const Unwinder* unwinder_ = nullptr;
  EventSink* sink_ = nullptr;  // valid during Drain
  uint64_t recorded_ = 0;
  uint64_t summed_ = 0;
  uint64_t dropped_counted_ = 0;
  uint64_t unsummed_counted_ = 0;
};

Status OffCpuSource::Impl::Load(const SourceContext& context) {
  XPU_ASSIGN_OR_RETURN(const PidNamespace pid_namespace, OwnPidNamespace());
  program_.reset(off_cpu_bpf::open());
  if (!program_) return BpfError("BPF program off_cpu: open", -errno);
  program_->rodata->pid_namespace_device = pid_namespace.device;
  program_->rodata->pid_namespace_inode = pid_namespace.inode;
  program_->rodata->minimum_ns = context.options.off_cpu_min_ns;
  XPU_RETURN_IF_ERROR(UseUnwinder(*program_, unwinder_));
  XPU_RETURN_IF_ERROR(WatchOnly(*program_, context.scope));
  const int result = off_cpu_bpf::load(program_.get());
  return result == 0 ? Ok() : Status(BpfError("BPF program off_cpu: load", result));
}

Status OffCpuSource::Impl::Attach(bpf_program* program) {
  BpfLink link(bpf_program__attach(program));
  if (!link) return BpfError("BPF program off_cpu: attach to context switches", -errno);
  links_.push_back(std::move(link));
  return Ok();
}

Status OffCpuSource::Impl::Open(const SourceContext& context) {
  unwinder_ = context.unwinder.get();
  XPU_RETURN_IF_ERROR(Load(context));
  XPU_ASSIGN_OR_RETURN(
      BpfRing ring, BpfRing::Open(program_->maps.off_cpu_waits,
                                  [this](std::span<const std::byte> bytes) { TakeWait(bytes); }));
  ring_ = std::make_unique<BpfRing>(std::move(ring));
  const auto& programs = program_->progs;
  if (context.scope.is_program()) {
    XPU_RETURN_IF_ERROR(Attach(programs.inherit_mark));
    XPU_RETURN_IF_ERROR(Attach(programs.begin_program));
    XPU_RETURN_IF_ERROR(MarkProgram(bpf_map__fd(program_->maps.recorded), context.scope.program));
  }
  XPU_RETURN_IF_ERROR(Attach(programs.take_stack_of_wait));
  XPU_RETURN_IF_ERROR(Attach(programs.off_cpu_switch));
  // Before its exec the program is ignored.
  SetOn(!context.scope.starts_paused);
  return Ok();
}

void OffCpuSource::Impl::TakeWait(std::span<const std::byte> bytes) {
  constexpr size_t kFixedBytes = offsetof(xpu_off_cpu_wait, stack);
  if (bytes.size() < offsetof(xpu_off_cpu_wait, stack.frames)) return;
  const auto& raw = *reinterpret_cast<const xpu_off_cpu_wait*>(bytes.data());
  ++recorded_;
  OffCpuWait wait;
  wait.start_ns = raw.start_ns;
  wait.end_ns = raw.end_ns;
  wait.pid = raw.pid;
  wait.tid = raw.tid;
  wait.state = static_cast<OffCpuState>(raw.state);
  wait.system_call = raw.system_call;
  if (raw.system_call >= 0) {
    const size_t stack_bytes = bytes.size() - kFixedBytes;
    stack_.Take(raw.stack, stack_bytes);
    stack_.CountLosses(sink_->losses(), raw.pid);
    // Taken before the native stack, because it writes definitions.
    wait.python_stack = TakePython(unwinder_, raw.stack, stack_bytes, raw.pid, *sink_);
    wait.stack = sink_->Intern(stack_.frames());
    wait.stack_flags = stack_.flags();
  }
  sink_->Write(wait);
}

void OffCpuSource::Impl::WriteSums(EventSink& sink) {
  const int map = bpf_map__fd(program_->maps.sums);
  const uint64_t now_ns = MonotonicNs();
  xpu_off_cpu_key key{};
  const xpu_off_cpu_key* before = nullptr;
  while (bpf_map_get_next_key(map, before, &key) == 0) {
    before = &key;
    xpu_off_cpu_sum value{};
    if (bpf_map_lookup_elem(map, &key, &value) != 0) continue;
    summed_ += value.count;
    OffCpuSum sum;
    sum.time_ns = now_ns;
    sum.pid = key.pid;
    sum.tid = key.tid;
    sum.state = static_cast<OffCpuState>(key.state);
    sum.count = value.count;
    sum.duration = value.duration_ns;
    sink.Write(sum);
  }
}

// `is_over`: nothing more is produced, so what is missing was lost.
void OffCpuSource::Impl::CountLosses(LossLedger& losses, bool is_over) {
  const auto counters = ReadCounters(program_->maps.counters);
  const uint64_t dropped = counters[XPU_OFF_CPU_DROPPED];
  losses.Add(LossKind::kOffCpuRingFull, dropped - std::exchange(dropped_counted_, dropped));
  uint64_t unsummed = counters[XPU_OFF_CPU_UNSUMMED];
  if (is_over) unsummed = counters[XPU_OFF_CPU_SEEN] - recorded_ - summed_ - dropped;
  losses.Add(LossKind::kOffCpuNotSummed, unsummed - std::exchange(unsummed_counted_, unsummed));
}

OffCpuSource::OffCpuSource(SourceContext& context) : context_(context) {}
OffCpuSource::~OffCpuSource() = default;

Result<std::unique_ptr<Source>> OffCpuSource::Open(SourceContext& context) {
  if (!context.options.record_off_cpu) return std::unique_ptr<Source>();
  return std::unique_ptr<Source>(new OffCpuSource(context));
}

Status OffCpuSource::Arm() {
  impl_ = std::make_unique<Impl>();
  return impl_->Open(context_);
}

void OffCpuSource::Switch(const SwitchState& wanted) { impl_->SetOn(wanted.is_on); }

void OffCpuSource::Drain(EventSink& sink) {
  impl_->sink_ = &sink;
  impl_->ring_->Drain();
}

void OffCpuSource::CountLosses(EventSink& sink) { impl_->CountLosses(sink.losses(), false); }

void OffCpuSource::Stop(EventSink& sink, bool /*may_go_on*/) {
  impl_->SetOn(false);
  impl_->links_.clear();
  WaitForPrograms();
  Drain(sink);
  impl_->WriteSums(sink);
  impl_->CountLosses(sink.losses(), true);
}

}  // namespace xpu
