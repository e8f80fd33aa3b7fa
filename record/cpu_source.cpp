#include "record/cpu_source.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <cpu_sample.skel.h>
#include <sys/ioctl.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/bpf_support.h"
#include "record/marker_timing.h"
#include "record/perf_event.h"
#include "record/stack_frames.h"
#include "record/unwinder.h"

namespace xpu {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

// Why the event ticks more often than it samples is in cpu_sample.bpf.c. A tick costs about 1.5 us:
// 0.15 % of a busy CPU.
constexpr uint64_t kTicksPerSecond = 1000;

uint32_t TicksPerSample(uint64_t frequency_hz) {
  return static_cast<uint32_t>(std::max<uint64_t>(kTicksPerSecond / frequency_hz, 1));
}

Result<UniqueFd> OpenClock(pid_t target, uint64_t frequency_hz) {
  perf_event_attr attributes = PerfAttributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
  attributes.freq = 1;
  attributes.sample_freq = frequency_hz;
  attributes.disabled = 1;
  attributes.enable_on_exec = 1;
  attributes.inherit = 1;
  UniqueFd event = OpenPerfEvent(attributes, target, -1);
  if (event) return event;
  std::string hint;
  if (errno == EINVAL) {
    hint = "is -F above the sysctl kernel.perf_event_max_sample_rate?";
  } else if (errno == EACCES || errno == EPERM) {
    hint = Format(
        "run as root or with CAP_PERFMON, or: sysctl kernel.perf_event_paranoid=1 "
        "(it is {})",
        PerfParanoidLevel());
  }
  return SystemError(Format("perf_event_open(cpu-clock, {} Hz)", frequency_hz), errno, hint);
}

}  // namespace

class CpuSource::Impl {
 public:
  Impl() : stack_(KernelStackLimit()) {}

  Status Open(pid_t target, uint64_t frequency_hz, const UnwindMaps* maps);
  void TakeSample(std::span<const std::byte> bytes);

  Handle<cpu_sample_bpf, cpu_sample_bpf::destroy> program_;
  BpfLink fork_link_;
  BpfLink exec_link_;
  UniqueFd event_;
  std::unique_ptr<BpfRing> ring_;
  uint64_t frequency_hz_ = 0;
  uint32_t ticks_per_sample_ = 1;
  StackFrames stack_;
  EventSink* sink_ = nullptr;  // during Drain
  uint64_t dropped_counted_ = 0;
};

Status CpuSource::Impl::Open(pid_t target, uint64_t frequency_hz, const UnwindMaps* maps) {
  frequency_hz_ = frequency_hz;
  XPU_ASSIGN_OR_RETURN(const PidNamespace pid_namespace, OwnPidNamespace());
  ticks_per_sample_ = TicksPerSample(frequency_hz);
  XPU_ASSIGN_OR_RETURN(event_, OpenClock(target, frequency_hz * ticks_per_sample_));
  program_.reset(cpu_sample_bpf::open());
  if (!program_) return BpfError("BPF program cpu_sample: open", -errno);
  program_->rodata->pid_namespace_device = pid_namespace.device;
  program_->rodata->pid_namespace_inode = pid_namespace.inode;
  program_->rodata->ticks_per_sample = ticks_per_sample_;
  XPU_RETURN_IF_ERROR(UseTables(*program_, maps));
  if (maps == nullptr) {
    bpf_program__set_autoload(program_->progs.inherit_code, false);
    bpf_program__set_autoload(program_->progs.begin_code, false);
  }
  if (int result = cpu_sample_bpf::load(program_.get()); result != 0) {
    return BpfError("BPF program cpu_sample: load", result);
  }
  XPU_ASSIGN_OR_RETURN(
      BpfRing ring, BpfRing::Open(program_->maps.samples,
                                  [this](std::span<const std::byte> bytes) { TakeSample(bytes); }));
  ring_ = std::make_unique<BpfRing>(std::move(ring));
  if (maps != nullptr) {
    fork_link_.reset(bpf_program__attach(program_->progs.inherit_code));
    if (!fork_link_) return BpfError("BPF program cpu_sample: attach to forks", -errno);
    exec_link_.reset(bpf_program__attach(program_->progs.begin_code));
    if (!exec_link_) return BpfError("BPF program cpu_sample: attach to execs", -errno);
  }
  // Not libbpf's attach function: it enables the event at once, before the target's exec.
  const int fd = bpf_program__fd(program_->progs.cpu_sample);
  if (::ioctl(event_.get(), PERF_EVENT_IOC_SET_BPF, fd) != 0) {
    return BpfError("BPF program cpu_sample: attach to the sampling event", -errno);
  }
  return Ok();
}

void CpuSource::Impl::TakeSample(std::span<const std::byte> bytes) {
  constexpr size_t kFixedBytes = offsetof(xpu_sample, stack);
  if (bytes.size() < offsetof(xpu_sample, stack.frames)) return;
  const auto& raw = *reinterpret_cast<const xpu_sample*>(bytes.data());
  stack_.Take(raw.stack, bytes.size() - kFixedBytes);
  stack_.CountLosses(sink_->losses(), raw.pid);
  CpuSample sample;
  sample.time_ns = raw.time_ns;
  sample.source = raw.source;
  sample.pid = raw.pid;
  sample.tid = raw.tid;
  sample.cpu = raw.cpu;
  sample.stack = sink_->Intern(stack_.frames());
  sample.stack_flags = stack_.flags();
  sink_->Write(sample);
}

CpuSource::CpuSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CpuSource::CpuSource(CpuSource&&) noexcept = default;
CpuSource::~CpuSource() = default;

Result<CpuSource> CpuSource::Open(pid_t target, uint64_t frequency_hz, const UnwindMaps* maps) {
  auto impl = std::make_unique<Impl>();
  XPU_RETURN_IF_ERROR(impl->Open(target, frequency_hz, maps));
  return CpuSource(std::move(impl));
}

void CpuSource::Describe(EventSink& sink) const {
  SampleSource source;
  source.source = 1;
  source.name = sink.Intern("cpu-clock");
  source.frequency_hz = impl_->frequency_hz_;
  // The kernel rounds the time between ticks down to whole nanoseconds.
  source.period =
      kNsPerSecond / (impl_->frequency_hz_ * impl_->ticks_per_sample_) * impl_->ticks_per_sample_;
  source.unit = sink.Intern("ns");
  sink.Write(source);
}

void CpuSource::Drain(EventSink& sink) {
  impl_->sink_ = &sink;
  impl_->ring_->Drain();
}

void CpuSource::CountLosses(EventSink& sink) {
  const uint64_t dropped = ReadCounters(impl_->program_->maps.counters)[XPU_SAMPLES_DROPPED];
  sink.losses().Add(LossKind::kSampleRingFull, dropped - impl_->dropped_counted_);
  impl_->dropped_counted_ = dropped;
}

}  // namespace xpu
