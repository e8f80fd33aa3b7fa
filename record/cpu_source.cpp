#include "record/cpu_source.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <cpu_sample.skel.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/bpf_support.h"
#include "record/marker_timing.h"
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

bool TicksFaster(const CpuEvent& event) { return event.is_clock && event.period == 0; }

}  // namespace

// One event and its copy of the program: what the kernel hands to a program of an inherited event
// does not tell which event it is (a cookie is not inherited), so the copy knows it.
struct CpuSource::Event {
  CpuEvent event;
  uint64_t frequency_hz = 0;
  uint32_t ticks_per_sample = 1;
  UniqueFd fd;
  Handle<cpu_sample_bpf, cpu_sample_bpf::destroy> program;

  Status Open(pid_t target);
  // `first`: whose ring and counters this one shares; nullptr: this is the first.
  Status Load(uint32_t source, const Event* first, const UnwindMaps* maps);
  Status ShareMaps(const Event& first);
  SampleSource Describe(EventSink& sink) const;
};

Status CpuSource::Event::Open(pid_t target) {
  if (TicksFaster(event)) ticks_per_sample = TicksPerSample(frequency_hz);
  XPU_ASSIGN_OR_RETURN(fd, OpenCpuEvent(event, target, frequency_hz * ticks_per_sample));
  return Ok();
}

Status CpuSource::Event::ShareMaps(const Event& first) {
  const auto& from = first.program->maps;
  const auto& to = program->maps;
  int result = bpf_map__reuse_fd(to.samples, bpf_map__fd(from.samples));
  if (result == 0) result = bpf_map__reuse_fd(to.counters, bpf_map__fd(from.counters));
  return result == 0 ? Ok() : Status(BpfError("BPF program cpu_sample: share maps", result));
}

Status CpuSource::Event::Load(uint32_t source, const Event* first, const UnwindMaps* maps) {
  XPU_ASSIGN_OR_RETURN(const PidNamespace pid_namespace, OwnPidNamespace());
  program.reset(cpu_sample_bpf::open());
  if (!program) return BpfError("BPF program cpu_sample: open", -errno);
  program->rodata->pid_namespace_device = pid_namespace.device;
  program->rodata->pid_namespace_inode = pid_namespace.inode;
  program->rodata->ticks_per_sample = ticks_per_sample;
  program->rodata->source = source;
  XPU_RETURN_IF_ERROR(UseTables(*program, maps));
  if (maps == nullptr || first != nullptr) {
    bpf_program__set_autoload(program->progs.inherit_code, false);
    bpf_program__set_autoload(program->progs.begin_code, false);
  }
  if (first != nullptr) XPU_RETURN_IF_ERROR(ShareMaps(*first));
  if (int result = cpu_sample_bpf::load(program.get()); result != 0) {
    return BpfError("BPF program cpu_sample: load", result);
  }
  // Not libbpf's attach function: it enables the event at once, before the target's exec.
  const int program_fd = bpf_program__fd(program->progs.cpu_sample);
  if (::ioctl(fd.get(), PERF_EVENT_IOC_SET_BPF, program_fd) != 0) {
    return BpfError("BPF program cpu_sample: attach to the sampling event", -errno);
  }
  return Ok();
}

SampleSource CpuSource::Event::Describe(EventSink& sink) const {
  SampleSource source;
  source.name = sink.Intern(event.name);
  source.unit = sink.Intern(event.is_clock ? "ns" : "events");
  source.period = event.period;
  if (event.period == 0) source.frequency_hz = frequency_hz;
  // The kernel rounds the time between ticks down to whole nanoseconds.
  if (TicksFaster(event)) {
    source.period = kNsPerSecond / (frequency_hz * ticks_per_sample) * ticks_per_sample;
  }
  return source;
}

class CpuSource::Impl {
 public:
  Impl() : stack_(KernelStackLimit()) {}

  Status Open(pid_t target, std::span<const CpuEvent> events, uint64_t frequency_hz,
              const UnwindMaps* maps);
  Status FollowCode();
  void TakeSample(std::span<const std::byte> bytes);

  std::vector<Event> events_;  // CpuSample::source - 1
  BpfLink fork_link_;
  BpfLink exec_link_;
  std::unique_ptr<BpfRing> ring_;
  StackFrames stack_;
  EventSink* sink_ = nullptr;  // during Drain
  uint64_t dropped_counted_ = 0;
};

Status CpuSource::Impl::Open(pid_t target, std::span<const CpuEvent> events, uint64_t frequency_hz,
                             const UnwindMaps* maps) {
  for (const CpuEvent& event : events) {
    events_.emplace_back().event = event;
    events_.back().frequency_hz = frequency_hz;
    XPU_RETURN_IF_ERROR(events_.back().Open(target));
  }
  for (Event& event : events_) {
    const bool is_first = &event == &events_.front();
    const auto source = static_cast<uint32_t>(&event - events_.data()) + 1;
    XPU_RETURN_IF_ERROR(event.Load(source, is_first ? nullptr : &events_.front(), maps));
  }
  XPU_ASSIGN_OR_RETURN(
      BpfRing ring, BpfRing::Open(events_.front().program->maps.samples,
                                  [this](std::span<const std::byte> bytes) { TakeSample(bytes); }));
  ring_ = std::make_unique<BpfRing>(std::move(ring));
  return maps == nullptr ? Ok() : FollowCode();
}

Status CpuSource::Impl::FollowCode() {
  const auto& programs = events_.front().program->progs;
  fork_link_.reset(bpf_program__attach(programs.inherit_code));
  if (!fork_link_) return BpfError("BPF program cpu_sample: attach to forks", -errno);
  exec_link_.reset(bpf_program__attach(programs.begin_code));
  if (!exec_link_) return BpfError("BPF program cpu_sample: attach to execs", -errno);
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
  // With a frequency the kernel chooses the period anew all the time; a clock's stays.
  const CpuEvent& event = events_.at(raw.source - 1).event;
  if (event.period == 0 && !event.is_clock) sample.weight = raw.period;
  sink_->Write(sample);
}

CpuSource::CpuSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CpuSource::CpuSource(CpuSource&&) noexcept = default;
CpuSource::~CpuSource() = default;

Result<CpuSource> CpuSource::Open(pid_t target, std::span<const CpuEvent> events,
                                  uint64_t frequency_hz, const UnwindMaps* maps) {
  auto impl = std::make_unique<Impl>();
  XPU_RETURN_IF_ERROR(impl->Open(target, events, frequency_hz, maps));
  return CpuSource(std::move(impl));
}

void CpuSource::Describe(EventSink& sink) const {
  uint32_t number = 0;
  for (const Event& event : impl_->events_) {
    SampleSource source = event.Describe(sink);
    source.source = ++number;
    sink.Write(source);
  }
}

void CpuSource::Drain(EventSink& sink) {
  impl_->sink_ = &sink;
  impl_->ring_->Drain();
}

void CpuSource::CountLosses(EventSink& sink) {
  const bpf_map* counters = impl_->events_.front().program->maps.counters;
  const uint64_t dropped = ReadCounters(counters)[XPU_SAMPLES_DROPPED];
  sink.losses().Add(LossKind::kSampleRingFull, dropped - impl_->dropped_counted_);
  impl_->dropped_counted_ = dropped;
}

}  // namespace xpu
