#include "record/gpu_metrics/gpu_metrics_source.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <random>
#include <span>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "format/base/own_program.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/gpu_metrics/metrics_helper.h"

namespace xpu {
namespace {

using namespace gpu_metrics;

constexpr std::string_view kDriverFile = "libcuda.so";

uint64_t RandomNumber() {
  std::random_device random;
  return uint64_t{random()} << 32 | random() | 1;
}

// Of a field that the helper has ended with a zero, or has not.
template <size_t kSize>
std::string_view TextOf(const char (&field)[kSize]) {
  return {field, ::strnlen(field, kSize)};
}

// The variables that say which GPUs the program sees, and in which order.
std::vector<std::string> DeviceVariables(const std::vector<std::string>& environment) {
  std::vector<std::string> kept;
  for (const std::string& variable : environment) {
    if (variable.starts_with("CUDA_VISIBLE_DEVICES=") ||
        variable.starts_with("CUDA_DEVICE_ORDER=")) {
      kept.push_back(variable);
    }
  }
  return kept;
}

std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

GpuMetricsSource::GpuMetricsSource(SourceContext& context)
    : context_(context),
      counters_(context.options.gpu_metrics.counters),
      instance_{RandomNumber()},
      paused_(context.options.control.StartsPaused()),
      buffer_(kMaxPacketBytes) {}

Result<std::unique_ptr<Source>> GpuMetricsSource::Open(SourceContext& context) {
  const GpuMetricsOptions& options = context.options.gpu_metrics;
  const bool watches = !options.no_clocks && context.options.record_gpu;
  if (!watches && !options.counters) return std::unique_ptr<Source>();
  std::unique_ptr<GpuMetricsSource> source(new GpuMetricsSource(context));
  if (source->counters_) XPU_RETURN_IF_ERROR(source->Start());
  if (watches) context.processes.AddListener(source.get());
  return std::unique_ptr<Source>(std::move(source));
}

GpuMetricsSource::~GpuMetricsSource() { End(); }

Status GpuMetricsSource::Start() {
  is_started_ = true;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return SystemError("socketpair for the process that reads GPU metrics", errno);
  }
  socket_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  // For what arrives between two drains, and a little more.
  const int buffer_bytes = 4 << 20;
  if (::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUFFORCE, &buffer_bytes, sizeof(buffer_bytes)) != 0) {
    ::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
  }
  MetricsHelperSettings settings;
  settings.watch = true;
  settings.paused = paused_;
  settings.options = context_.options.gpu_metrics;
  std::vector<std::string> arguments = settings.ToArguments();
  arguments.insert(arguments.begin(), kMetricsHelperName);
  std::vector<std::string> environment = DeviceVariables(context_.environment);
  const std::vector<std::string>& more = settings.options.helper_environment;
  environment.insert(environment.end(), more.begin(), more.end());

  const int error = StartOwnProgram(theirs.get(), PointersTo(arguments).data(),
                                    PointersTo(environment).data(), &helper_);
  if (error == 0) return Ok();
  helper_ = -1;
  socket_.reset();
  return SystemError("starting the process that reads GPU metrics", error);
}

void GpuMetricsSource::Begin(EventSink& sink) { Drain(sink); }

void GpuMetricsSource::OnMapping(uint32_t /*pid*/, uint64_t /*start*/, const CodeMapping& mapping) {
  if (is_wanted_) return;
  const std::string& path = context_.processes.file(mapping.file).path;
  const size_t name = path.rfind('/') + 1;
  is_wanted_ = std::string_view(path).substr(name).starts_with(kDriverFile);
}

void GpuMetricsSource::Send(Command command) {
  if (socket_) static_cast<void>(::send(socket_.get(), &command, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

void GpuMetricsSource::Switch(const SwitchState& wanted) {
  if (paused_ == !wanted.is_on) return;
  paused_ = !wanted.is_on;
  Send(paused_ ? Command::kPause : Command::kResume);
}

void GpuMetricsSource::Drain(EventSink& sink) {
  if (is_wanted_ && !is_started_) {
    if (const Status status = Start(); !status.ok()) {
      sink.losses().Add(RefusedKind(), 1, 0, {}, status.error().message);
    }
  }
  while (ReadPacket(sink)) {
  }
}

bool GpuMetricsSource::ReadPacket(EventSink& sink) {
  if (!socket_ || is_over_) return false;
  const ssize_t size = ::recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (size <= 0) {
    is_over_ = true;
    is_ready_ = true;
    return false;
  }
  Write(std::span(buffer_).first(static_cast<size_t>(size)), sink);
  return true;
}

void GpuMetricsSource::Write(std::span<const char> packet, EventSink& sink) {
  PacketHeader header;
  if (packet.size() < sizeof(header)) return;
  std::memcpy(&header, packet.data(), sizeof(header));
  const auto each = [&](auto item) {
    for (size_t i = 0; i < header.count; ++i) {
      const size_t at = sizeof(header) + i * sizeof(item);
      if (at + sizeof(item) > packet.size()) return;
      std::memcpy(&item, packet.data() + at, sizeof(item));
      Write(item, sink);
    }
  };
  switch (header.kind) {
    case PacketKind::kDevice:
      return each(DevicePacket{});
    case PacketKind::kState:
      return each(StatePacket{});
    case PacketKind::kFault:
      return each(FaultPacket{});
    case PacketKind::kMetric:
      return each(MetricPacket{});
    case PacketKind::kSamples:
      return each(SamplePacket{});
    case PacketKind::kClock:
      return each(ClockPacket{});
    case PacketKind::kLost:
      return each(LostPacket{});
    case PacketKind::kRefused:
      return each(RefusedPacket{});
    case PacketKind::kReady:
      is_ready_ = true;
  }
}

void GpuMetricsSource::Write(const DevicePacket& packet, EventSink& sink) {
  GpuDevice event;
  event.gpu = packet.gpu;
  event.uuid = sink.Intern({reinterpret_cast<const char*>(packet.uuid), sizeof(packet.uuid)});
  event.name = sink.Intern(TextOf(packet.name));
  event.index = packet.index;
  event.pci_address = sink.Intern(TextOf(packet.pci_address));
  event.driver_version = sink.Intern(TextOf(packet.driver_version));
  event.memory_bytes = packet.memory_bytes;
  event.power_limit = packet.power_limit;
  event.max_sm_clock = packet.max_sm_clock;
  event.max_memory_clock = packet.max_memory_clock;
  sink.Write(event);
}

void GpuMetricsSource::Write(const StatePacket& packet, EventSink& sink) {
  if (paused_) return;
  GpuState event;
  event.time_ns = packet.time_ns;
  event.gpu = packet.gpu;
  event.sm_clock = packet.sm_clock;
  event.memory_clock = packet.memory_clock;
  event.power = packet.power;
  event.energy = packet.energy;
  event.temperature = packet.temperature;
  event.throttle_reasons = packet.throttle_reasons;
  event.memory_used_bytes = packet.memory_used_bytes;
  event.power_capped = packet.power_capped;
  event.thermal_capped = packet.thermal_capped;
  event.corrected_errors = packet.corrected_errors;
  event.uncorrected_errors = packet.uncorrected_errors;
  sink.Write(event);
}

void GpuMetricsSource::Write(const FaultPacket& packet, EventSink& sink) {
  GpuFault event;
  event.time_ns = packet.time_ns;
  event.gpu = packet.gpu;
  event.kind = packet.kind;
  event.code = packet.code;
  sink.Write(event);
}

void GpuMetricsSource::Write(const MetricPacket& packet, EventSink& sink) {
  GpuMetric event;
  event.metric = packet.metric;
  event.gpu = packet.gpu;
  event.name = sink.Intern(TextOf(packet.name));
  event.source = sink.Intern(TextOf(packet.source));
  event.unit = sink.Intern(TextOf(packet.unit));
  event.quantum = packet.quantum;
  event.peak = packet.peak;
  event.interval = packet.interval;
  sink.Write(event);
}

void GpuMetricsSource::Write(const SamplePacket& packet, EventSink& sink) {
  GpuMetricSample event;
  event.instance = instance_;
  event.gpu = packet.gpu;
  event.metric = packet.metric;
  event.start_ns = packet.start_ns;
  event.end_ns = packet.end_ns;
  event.value_0 = packet.values[0];
  event.value_1 = packet.values[1];
  event.value_2 = packet.values[2];
  event.value_3 = packet.values[3];
  event.value_4 = packet.values[4];
  event.value_5 = packet.values[5];
  event.value_6 = packet.values[6];
  event.value_7 = packet.values[7];
  sink.Write(event);
}

void GpuMetricsSource::Write(const ClockPacket& packet, EventSink& sink) {
  ClockPair event;
  event.instance = instance_;
  event.before_ns = packet.before_ns;
  event.clock_ns = packet.clock_ns;
  event.after_ns = packet.after_ns;
  sink.Write(event);
}

void GpuMetricsSource::Write(const LostPacket& packet, EventSink& sink) {
  sink.losses().Add(LossKind::kGpuSamplesLost, packet.samples, 0, {}, Format("GPU {}", packet.gpu));
}

void GpuMetricsSource::Write(const RefusedPacket& packet, EventSink& sink) {
  // A machine without the driver has nothing to report, unless it was asked for.
  if (packet.is_absent && !counters_) return;
  sink.losses().Add(RefusedKind(), 1, 0, {},
                    Format("{}: {}", packet.is_counters ? "hardware counters" : "clocks and power",
                           TextOf(packet.reason)));
}

void GpuMetricsSource::Stop(EventSink& sink, bool /*may_go_on*/) {
  if (!socket_) return;
  // What the helper has still to send, and the end of it.
  constexpr uint64_t kPatienceNs = 3'500'000'000;
  constexpr int kStepMs = 20;
  const uint64_t deadline_ns = MonotonicNs() + kPatienceNs;
  ::shutdown(socket_.get(), SHUT_WR);
  paused_ = false;
  while (!is_over_ && MonotonicNs() < deadline_ns) {
    pollfd place{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    ::poll(&place, 1, kStepMs);
    Drain(sink);
  }
  End();
}

void GpuMetricsSource::End() {
  socket_.reset();
  if (helper_ < 0) return;
  constexpr int kTries = 100;
  for (int tries = 0; tries < kTries; ++tries) {
    const pid_t ended = ::waitpid(helper_, nullptr, WNOHANG);
    if (ended == helper_ || (ended < 0 && errno != EINTR)) break;
    if (tries == kTries / 2) ::kill(helper_, SIGKILL);
    ::poll(nullptr, 0, 5);
  }
  helper_ = -1;
}

}  // namespace xpu
