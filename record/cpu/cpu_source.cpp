#include "record/cpu/cpu_source.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <cpu_sample.skel.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/kernel/bpf_support.h"
#include "record/kernel/perf_event.h"
#include "record/kernel/probe_links.h"
#include "record/process/watched_processes.h"
#include "record/unwind/stack_frames.h"
#include "record/unwind/unwinder.h"

namespace xpu {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

// For a clock in each thread. cpu_sample.bpf.c says why it ticks more often than it samples.
constexpr uint64_t kTicksPerSecond = 1000;

uint32_t TicksPerSample(uint64_t frequency_hz) {
  return static_cast<uint32_t>(std::max<uint64_t>(kTicksPerSecond / frequency_hz, 1));
}

bool IsClockByFrequency(const CpuEvent& event) { return event.is_clock && event.period == 0; }

}  // namespace

// One event. All events share one BPF program, which distinguishes them by number.
struct CpuSource::Event {
  CpuEvent event;
  uint32_t number = 0;  // CpuSample::source
  uint64_t frequency_hz = 0;
  uint32_t ticks_per_sample = 1;
  bool is_of_cpu = false;
  std::vector<UniqueFd> fds;  // one, or one or two for each CPU

  Status Open(const Scope& scope);
  std::vector<CpuEvent> Clocks() const;
  Status OpenOnCpus();
  Status OpenInProgram(const Scope& scope);
  void Switch(bool on) const;
  Status Attach(int program_fd) const;
  SampleSource Describe(EventSink& sink) const;
};

// Measured at 99 Hz in a virtual machine, where a tick takes 20 us: a clock in each thread, which
// must tick more often than it samples and is reprogrammed at each context switch, costs 1.9 to 2.7
// % of a program that computes; clocks on the CPUs cost 0 to 0.9 %. But these tick on all CPUs,
// even idle ones, so they must not tick more often than needed.
Status CpuSource::Event::Open(const Scope& scope) {
  if (!scope.is_program()) return OpenOnCpus();
  const bool is_rare = IsClockByFrequency(event) && TicksPerSample(frequency_hz) > 1;
  // A container's seccomp filter or a security module may allow only the other kind.
  if (is_rare && OpenOnCpus().ok()) return Ok();
  return OpenInProgram(scope);
}

// A program that wakes up at the frequency of one clock, or a multiple of it, would always be
// sampled at work, or never. Two clocks together tick as often as one would, and their periods have
// the golden ratio to each other and to that one's. So a program in step with one clock is out of
// step with the other, and a program in step with their sum is sampled evenly.
std::vector<CpuEvent> CpuSource::Event::Clocks() const {
  if (!IsClockByFrequency(event)) return {event};
  constexpr double kGoldenRatio = 1.6180339887498949;
  const double period_ns = static_cast<double>(kNsPerSecond) / static_cast<double>(frequency_hz);
  std::vector<CpuEvent> clocks(2, event);
  clocks[0].period = static_cast<uint64_t>(period_ns * kGoldenRatio);
  clocks[1].period = static_cast<uint64_t>(period_ns * (1 + kGoldenRatio));
  return clocks;
}

// Periods of CPU clocks do not restart with threads, so each tick is a sample.
Status CpuSource::Event::OpenOnCpus() {
  std::vector<UniqueFd> opened;
  for (const int cpu : OnlineCpus()) {
    const CpuEventScope counted{.cpu = cpu, .starts_at_exec = false, .number = number};
    for (const CpuEvent& clock : Clocks()) {
      XPU_ASSIGN_OR_RETURN(UniqueFd fd, OpenCpuEvent(clock, counted, frequency_hz));
      opened.push_back(std::move(fd));
    }
  }
  fds = std::move(opened);
  is_of_cpu = true;
  return Ok();
}

Status CpuSource::Event::OpenInProgram(const Scope& scope) {
  if (IsClockByFrequency(event)) ticks_per_sample = TicksPerSample(frequency_hz);
  const CpuEventScope counted{
      .target = scope.program, .starts_at_exec = !scope.starts_paused, .number = number};
  XPU_ASSIGN_OR_RETURN(UniqueFd fd, OpenCpuEvent(event, counted, frequency_hz * ticks_per_sample));
  fds.push_back(std::move(fd));
  return Ok();
}

// The kernel applies it to the events that child tasks have inherited.
void CpuSource::Event::Switch(bool on) const {
  for (const UniqueFd& fd : fds) {
    ::ioctl(fd.get(), on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
  }
}

// Not by libbpf's attach function, which enables the event at once, before the target's exec.
Status CpuSource::Event::Attach(int program_fd) const {
  for (const UniqueFd& fd : fds) {
    if (::ioctl(fd.get(), PERF_EVENT_IOC_SET_BPF, program_fd) != 0) {
      return BpfError("BPF program cpu_sample: attach to the sampling event", -errno);
    }
  }
  return Ok();
}

SampleSource CpuSource::Event::Describe(EventSink& sink) const {
  SampleSource source;
  source.name = sink.Intern(event.name);
  source.unit = sink.Intern(event.is_clock ? "ns" : "events");
  source.period = event.period;
  if (event.period == 0) source.frequency_hz = frequency_hz;
  // The kernel rounds the time between ticks down to nanoseconds.
  if (IsClockByFrequency(event)) {
    source.period = kNsPerSecond / (frequency_hz * ticks_per_sample) * ticks_per_sample;
  }
  return source;
}

class CpuSource::Impl {
 public:
  Impl() : stack_(KernelStackLimit()) {}

  Status Open(const Scope& scope, std::span<const CpuEvent> events, uint64_t frequency_hz,
              const Unwinder* unwinder);
  Status Load(const Scope& scope, const Unwinder* unwinder);
  Status Follow(const Scope& scope);
  bool MarksProgram(const Scope& scope) const;
  void TakeSample(std::span<const std::byte> bytes);

  std::vector<Event> events_;  // CpuSample::source - 1
  Handle<cpu_sample_bpf, cpu_sample_bpf::destroy> program_;
  BpfLink fork_link_;
  BpfLink exec_link_;
  std::unique_ptr<BpfRing> ring_;
  StackFrames stack_;
  const Unwinder* unwinder_ = nullptr;
  EventSink* sink_ = nullptr;  // valid during Drain
  uint64_t dropped_counted_ = 0;
  uint64_t unmarked_counted_ = 0;
};

Status CpuSource::Impl::Open(const Scope& scope, std::span<const CpuEvent> events,
                             uint64_t frequency_hz, const Unwinder* unwinder) {
  unwinder_ = unwinder;
  if (events.size() > XPU_MAX_SAMPLED_EVENTS) {
    return Error{
        ErrorKind::kUsage,
        Format("-e: {} events given; the maximum is {}", events.size(), XPU_MAX_SAMPLED_EVENTS),
        {}};
  }
  for (const CpuEvent& event : events) {
    Event& opened = events_.emplace_back();
    opened.event = event;
    opened.number = static_cast<uint32_t>(events_.size());
    opened.frequency_hz = frequency_hz;
    XPU_RETURN_IF_ERROR(opened.Open(scope));
  }
  XPU_RETURN_IF_ERROR(Load(scope, unwinder));
  for (const Event& event : events_) {
    XPU_RETURN_IF_ERROR(event.Attach(bpf_program__fd(program_->progs.cpu_sample)));
  }
  XPU_ASSIGN_OR_RETURN(
      BpfRing ring, BpfRing::Open(program_->maps.samples,
                                  [this](std::span<const std::byte> bytes) { TakeSample(bytes); }));
  ring_ = std::make_unique<BpfRing>(std::move(ring));
  return Follow(scope);
}

bool CpuSource::Impl::MarksProgram(const Scope& scope) const {
  const auto is_of_cpu = [](const Event& event) { return event.is_of_cpu; };
  return scope.is_program() && std::any_of(events_.begin(), events_.end(), is_of_cpu);
}

Status CpuSource::Impl::Load(const Scope& scope, const Unwinder* unwinder) {
  XPU_ASSIGN_OR_RETURN(const PidNamespace pid_namespace, OwnPidNamespace());
  program_.reset(cpu_sample_bpf::open());
  if (!program_) return BpfError("BPF program cpu_sample: open", -errno);
  program_->rodata->pid_namespace_device = pid_namespace.device;
  program_->rodata->pid_namespace_inode = pid_namespace.inode;
  for (const Event& event : events_) {
    program_->rodata->ticks_per_sample[event.number] = event.ticks_per_sample;
    program_->rodata->is_of_cpu[event.number] = event.is_of_cpu;
  }
  XPU_RETURN_IF_ERROR(UseUnwinder(*program_, unwinder));
  XPU_RETURN_IF_ERROR(WatchOnly(*program_, scope));
  const bool follows = unwinder != nullptr || MarksProgram(scope);
  bpf_program__set_autoload(program_->progs.follow_fork, follows);
  bpf_program__set_autoload(program_->progs.follow_exec, follows);
  const int result = cpu_sample_bpf::load(program_.get());
  return result == 0 ? Ok() : Status(BpfError("BPF program cpu_sample: load", result));
}

Status CpuSource::Impl::Follow(const Scope& scope) {
  const auto& programs = program_->progs;
  if (!bpf_program__autoload(programs.follow_fork)) return Ok();
  fork_link_.reset(bpf_program__attach(programs.follow_fork));
  if (!fork_link_) return BpfError("BPF program cpu_sample: attach to forks", -errno);
  exec_link_.reset(bpf_program__attach(programs.follow_exec));
  if (!exec_link_) return BpfError("BPF program cpu_sample: attach to execs", -errno);
  if (!MarksProgram(scope)) return Ok();
  XPU_RETURN_IF_ERROR(MarkProgram(bpf_map__fd(program_->maps.recorded), scope.program));
  // Events on CPUs cannot start at an exec; before it the BPF program ignores their ticks.
  for (const Event& event : events_) {
    if (event.is_of_cpu && !scope.starts_paused) event.Switch(true);
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
  // Taken before the native stack, because it writes definitions.
  const StackId python =
      TakePython(unwinder_, raw.stack, bytes.size() - kFixedBytes, raw.pid, *sink_);
  sample.stack = sink_->Intern(stack_.frames());
  sample.stack_flags = stack_.flags();
  sample.python_stack = python;
  // With a frequency the kernel adjusts the period continuously, except for clocks.
  const CpuEvent& event = events_.at(raw.source - 1).event;
  if (event.period == 0 && !event.is_clock) sample.weight = raw.period;
  sink_->Write(sample);
}

CpuSource::CpuSource(SourceContext& context) : context_(context) {}
CpuSource::~CpuSource() = default;

Result<std::unique_ptr<Source>> CpuSource::Open(SourceContext& context) {
  if (!context.options.record_cpu) return std::unique_ptr<Source>();
  return std::unique_ptr<Source>(new CpuSource(context));
}

Status CpuSource::Try() {
  const CpuEvent clock;
  Impl impl;
  return impl.Open({.program = ::getpid(), .starts_paused = true}, {&clock, 1}, 99, nullptr);
}

Status CpuSource::Arm() {
  impl_ = std::make_unique<Impl>();
  const RecordOptions& options = context_.options;
  return impl_->Open(context_.scope, options.cpu_events, options.frequency_hz,
                     context_.unwinder.get());
}

void CpuSource::Begin(EventSink& sink) {
  for (const Event& event : impl_->events_) {
    SampleSource source = event.Describe(sink);
    source.source = event.number;
    sink.Write(source);
  }
}

void CpuSource::Switch(const SwitchState& wanted) {
  for (const Event& event : impl_->events_) event.Switch(wanted.is_on);
}

void CpuSource::Drain(EventSink& sink) {
  impl_->sink_ = &sink;
  impl_->ring_->Drain();
}

void CpuSource::CountLosses(EventSink& sink) {
  const auto counters = ReadCounters(impl_->program_->maps.counters);
  const uint64_t dropped = counters[XPU_SAMPLES_DROPPED];
  sink.losses().Add(LossKind::kSampleRingFull,
                    dropped - std::exchange(impl_->dropped_counted_, dropped));
  const uint64_t unmarked = counters[XPU_TASKS_UNMARKED];
  sink.losses().Add(LossKind::kProcessNotFollowed,
                    unmarked - std::exchange(impl_->unmarked_counted_, unmarked));
}

void CpuSource::Stop(EventSink& sink, bool /*may_go_on*/) {
  Drain(sink);
  CountLosses(sink);
}

}  // namespace xpu
