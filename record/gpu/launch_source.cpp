#include "record/gpu/launch_source.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <launch_stack.skel.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cupti_inject/wire.h"
#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/gpu/inject_library.h"
#include "record/kernel/bpf_support.h"
#include "record/unwind/stack_frames.h"
#include "record/unwind/unwinder.h"

namespace xpu {
namespace {

// The minimum of several rounds: disturbances only make a round longer.
double TimeHits(MarkerFunction marker) {
  constexpr int kRounds = 12;
  constexpr int kHits = 64;
  constexpr double kSlowNs = 3000;  // single-stepped; the exact value does not matter
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t before_ns = MonotonicNs();
    for (int hit = 0; hit < kHits; ++hit) marker(0, 0, 0, 0);
    const double hit_ns = static_cast<double>(MonotonicNs() - before_ns) / kHits;
    // The first round does not count: during its hits the kernel may replace the breakpoint by
    // something faster.
    if (round == 1 || (round > 1 && hit_ns < best)) best = hit_ns;
    if (round >= 1 && best > kSlowNs) break;
  }
  return best;
}

// The function that begins at `offset`: it runs none of the probes before that.
MarkerFunction MarkerFrom(MarkerFunction marker, uint64_t offset) {
  return reinterpret_cast<MarkerFunction>(reinterpret_cast<uintptr_t>(marker) + offset);
}

// If the first offset (nop5) is as slow as the last one (nop), the kernel only emulates nop5 and
// may optimize the middle one (nop10). Otherwise nothing can be gained there, and an offset that
// the kernel refuses costs 50 ms.
bool IsWorthTiming(uint64_t offset, const std::vector<MarkerTiming>& timed) {
  if (offset != wire::kMarkerOffsets[1] || timed.size() != 2) return true;
  return timed[0].hit_ns > 0.9 * timed[1].hit_ns;
}

// Does not return. The kernel removes the probes while the process exits, and nobody waits for it.
// Meanwhile it must not hold the recorder's standard output open.
[[noreturn]] void TimeInHelper(const bpf_program* program, const MarkerLocation& location,
                               int results) {
  static_assert(std::size(wire::kMarkerOffsets) == 3);
  constexpr uint64_t kOrder[] = {wire::kMarkerOffsets[0], wire::kMarkerOffsets[2],
                                 wire::kMarkerOffsets[1]};
  std::vector<AttachedProbes> links;
  std::vector<MarkerTiming> timed;
  for (uint64_t offset : kOrder) {
    if (!IsWorthTiming(offset, timed)) continue;
    auto link = AttachToMarker(program, location, offset, kThisProcess);
    if (!link.ok()) continue;
    timed.push_back({offset, TimeHits(MarkerFrom(location.marker.call, offset))});
    if (::write(results, &timed.back(), sizeof(MarkerTiming)) < 0) break;
    links.push_back(*std::move(link));
  }
  ::close(results);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
  ::_exit(0);
}

}  // namespace

Result<AttachedProbes> AttachToMarker(const bpf_program* program, const MarkerLocation& location,
                                      uint64_t offset, int process) {
  const ProbePoint point{location.marker.file_offset + offset, 0};
  return AttachedProbes::Attach(program, location.library, {&point, 1}, false, process);
}

Result<std::vector<MarkerTiming>> TimeMarker(const bpf_program* program,
                                             const MarkerLocation& location) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe", errno);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  // Forks twice, so that init reaps the helper.
  const pid_t child = ::fork();
  if (child < 0) return SystemError("fork", errno);
  if (child == 0) {
    if (::fork() == 0) TimeInHelper(program, location, write_end.get());
    ::_exit(0);
  }
  write_end.reset();
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::vector<MarkerTiming> timings;
  MarkerTiming timing;
  ssize_t n;
  while ((n = ::read(read_end.get(), &timing, sizeof(timing))) != 0) {
    if (n == static_cast<ssize_t>(sizeof(timing))) timings.push_back(timing);
    if (n < 0 && errno != EINTR) break;
  }
  return timings;
}

namespace {

static_assert(XPU_DOMAIN_SHIFT == wire::kDomainShift);

}  // namespace

class LaunchSource::Impl {
 public:
  Impl() : stack_(KernelStackLimit()) {}

  Status Open(const std::string& library, uint64_t session, const Unwinder* unwinder);
  void TakeLaunch(std::span<const std::byte> bytes);

  Handle<launch_stack_bpf, launch_stack_bpf::destroy> program_;
  std::optional<AttachedProbes> link_;
  std::unique_ptr<BpfRing> ring_;
  std::vector<MarkerTiming> timings_;
  uint64_t chosen_offset_ = 0;
  StackFrames stack_;
  const Unwinder* unwinder_ = nullptr;
  EventSink* sink_ = nullptr;  // valid during Drain
  uint64_t dropped_counted_ = 0;
  std::unordered_map<InstanceId, uint64_t> seen_;

 private:
  std::vector<uint64_t> OffsetsByCost() const;
  Status AttachAtCheapest(const std::string& library);
};

// The cheapest first, followed by those that could not be timed.
std::vector<uint64_t> LaunchSource::Impl::OffsetsByCost() const {
  std::vector<MarkerTiming> timed = timings_;
  std::sort(timed.begin(), timed.end(),
            [](const auto& a, const auto& b) { return a.hit_ns < b.hit_ns; });
  std::vector<uint64_t> offsets;
  offsets.reserve(timed.size() + std::size(wire::kMarkerOffsets));
  for (const MarkerTiming& timing : timed) offsets.push_back(timing.offset);
  for (uint64_t offset : wire::kMarkerOffsets) {
    if (std::find(offsets.begin(), offsets.end(), offset) == offsets.end()) {
      offsets.push_back(offset);
    }
  }
  return offsets;
}

Status LaunchSource::Impl::AttachAtCheapest(const std::string& library) {
  XPU_ASSIGN_OR_RETURN(const Marker marker, LoadMarker(library));
  const MarkerLocation location{library, marker};
  XPU_ASSIGN_OR_RETURN(timings_, TimeMarker(program_->progs.marker_timing, location));
  std::optional<Error> refusal;
  for (uint64_t offset : OffsetsByCost()) {
    auto link = AttachToMarker(program_->progs.launch_stack, location, offset, kEveryProcess);
    if (link.ok()) {
      link_.emplace(*std::move(link));
      chosen_offset_ = offset;
      return Ok();
    }
    if (!refusal) refusal = std::move(link).error();
  }
  return *std::move(refusal);
}

Status LaunchSource::Impl::Open(const std::string& library, uint64_t session,
                                const Unwinder* unwinder) {
  XPU_ASSIGN_OR_RETURN(const PidNamespace pid_namespace, OwnPidNamespace());
  program_.reset(launch_stack_bpf::open());
  if (!program_) return BpfError("BPF program launch_stack: open", -errno);
  program_->rodata->pid_namespace_device = pid_namespace.device;
  program_->rodata->pid_namespace_inode = pid_namespace.inode;
  program_->rodata->session = session;
  unwinder_ = unwinder;
  XPU_RETURN_IF_ERROR(UseUnwinder(*program_, unwinder));
  SelectMultiLink({program_->progs.launch_stack, program_->progs.marker_timing});
  if (int result = launch_stack_bpf::load(program_.get()); result != 0) {
    return BpfError("BPF program launch_stack: load", result);
  }
  XPU_ASSIGN_OR_RETURN(
      BpfRing ring, BpfRing::Open(program_->maps.launches,
                                  [this](std::span<const std::byte> bytes) { TakeLaunch(bytes); }));
  ring_ = std::make_unique<BpfRing>(std::move(ring));
  return AttachAtCheapest(library);
}

void LaunchSource::Impl::TakeLaunch(std::span<const std::byte> bytes) {
  if (bytes.size() < offsetof(xpu_launch, stack.frames)) return;
  const auto& raw = *reinterpret_cast<const xpu_launch*>(bytes.data());
  const InstanceId instance{raw.instance};
  ++seen_[instance];
  stack_.Take(raw.stack, bytes.size() - offsetof(xpu_launch, stack));
  stack_.CountLosses(sink_->losses(), raw.pid);
  LaunchStack launch;
  launch.instance = instance;
  launch.correlation_id = raw.correlation_id;
  launch.domain = static_cast<ApiDomain>(raw.domain);
  launch.callback_id = raw.callback_id;
  launch.time_ns = raw.time_ns;
  launch.pid = raw.pid;
  launch.tid = raw.tid;
  launch.cpu = raw.cpu;
  // Taken before the native stack, because it writes definitions.
  const StackId python =
      TakePython(unwinder_, raw.stack, bytes.size() - offsetof(xpu_launch, stack), raw.pid, *sink_);
  launch.stack = sink_->Intern(stack_.frames());
  launch.stack_flags = stack_.flags();
  launch.python_stack = python;
  sink_->Write(launch);
}

LaunchSource::LaunchSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LaunchSource::LaunchSource(LaunchSource&&) noexcept = default;
LaunchSource::~LaunchSource() = default;

Result<LaunchSource> LaunchSource::Open(const std::string& library, uint64_t session,
                                        const Unwinder* unwinder) {
  auto impl = std::make_unique<Impl>();
  XPU_RETURN_IF_ERROR(impl->Open(library, session, unwinder));
  return LaunchSource(std::move(impl));
}

const std::vector<MarkerTiming>& LaunchSource::timings() const { return impl_->timings_; }
uint64_t LaunchSource::chosen_offset() const { return impl_->chosen_offset_; }

uint64_t LaunchSource::seen(InstanceId instance) const {
  const auto found = impl_->seen_.find(instance);
  return found == impl_->seen_.end() ? 0 : found->second;
}

uint64_t LaunchSource::dropped() const { return impl_->dropped_counted_; }

void LaunchSource::Drain(EventSink& sink) {
  impl_->sink_ = &sink;
  impl_->ring_->Drain();
}

void LaunchSource::CountLosses(EventSink& sink) {
  const uint64_t dropped = ReadCounters(impl_->program_->maps.counters)[XPU_LAUNCHES_DROPPED];
  sink.losses().Add(LossKind::kLaunchRingFull, dropped - impl_->dropped_counted_);
  impl_->dropped_counted_ = dropped;
}

}  // namespace xpu
