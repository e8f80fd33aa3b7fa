#include "record/gpu_metrics/metrics_helper.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "format/base/number.h"
#include "format/base/split.h"
#include "format/base/text.h"
#include "record/gpu_metrics/counter_sampling.h"
#include "record/gpu_metrics/nvml.h"
#include "record/gpu_metrics/packet_sender.h"

namespace xpu {
namespace {

using namespace gpu_metrics;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kWatchInterval{100};

// State of both threads, changed by commands.
class HelperState {
 public:
  void Watch() {
    Set([this] { watches_ = true; });
  }
  void SetPaused(bool paused) {
    Set([this, paused] { paused_ = paused; });
  }
  void Stop() {
    Set([this] { stops_ = true; });
  }

  bool stops() const { return stops_; }
  bool paused() const { return paused_; }
  // Until `deadline`, or until it is to stop, or to be paused or not. False: it is to stop.
  bool SleepUntil(steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    const bool paused = paused_;
    changed_.wait_until(lock, deadline, [&] { return stops_ || paused_ != paused; });
    return !stops_;
  }
  // False: it is to stop.
  bool WaitForWatch() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stops_ || watches_; });
    return !stops_;
  }

 private:
  template <typename Change>
  void Set(Change&& change) {
    const std::scoped_lock lock(mutex_);
    change();
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> watches_{false};
  std::atomic<bool> paused_{false};
  std::atomic<bool> stops_{false};
};

void SendRefusal(const PacketSender& sender, bool is_counters, const Error& error) {
  RefusedPacket packet{};
  packet.is_counters = is_counters;
  packet.is_absent = error.kind == ErrorKind::kNotFound;
  const std::string text =
      error.hint.empty() ? error.message : Format("{} ({})", error.message, error.hint);
  text.copy(packet.reason, sizeof(packet.reason) - 1);
  sender.SendOne(PacketKind::kRefused, packet);
}

// Reads and sends until it is to stop.
void Watch(Nvml& nvml, HelperState& state, const PacketSender& sender) {
  ::prctl(PR_SET_NAME, "xpu-gpu-clocks");
  constexpr uint64_t kCountersEvery = 10;
  auto next = steady_clock::now();
  for (uint64_t round = 0;; ++round) {
    if (!state.paused() || state.stops()) {
      const bool with_counters = round % kCountersEvery == 0 || state.stops();
      const std::vector<StatePacket> states = nvml.ReadStates(with_counters);
      if (!sender.Send<StatePacket>(PacketKind::kState, states)) return;
      const std::vector<FaultPacket> faults = nvml.TakeFaults();
      if (!faults.empty() && !sender.Send<FaultPacket>(PacketKind::kFault, faults)) return;
    }
    if (state.stops()) return;  // after the state at the end
    // A call that took long does not make others come closer together.
    next = std::max(next + kWatchInterval, steady_clock::now() + kWatchInterval / 2);
    state.SleepUntil(next);
  }
}

class Helper {
 public:
  Helper(const MetricsHelperSettings& settings, int socket)
      : settings_(settings), socket_(socket), sender_(socket) {}

  int Run() {
    state_.SetPaused(settings_.paused);
    std::thread work([this] { Work(); });
    HandleCommands();
    state_.Stop();
    // A library that blocks must not keep the process: its end frees what it holds.
    constexpr milliseconds kPatience{3000};
    const auto deadline = steady_clock::now() + kPatience;
    while (!done_ && steady_clock::now() < deadline) std::this_thread::sleep_for(milliseconds(5));
    if (!done_) ::_exit(1);
    work.join();
    return 0;
  }

 private:
  void HandleCommands() {
    while (true) {
      char command = 0;
      const ssize_t size = ::recv(socket_, &command, 1, 0);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return;
      if (command == static_cast<char>(Command::kWatch)) state_.Watch();
      if (command == static_cast<char>(Command::kPause)) state_.SetPaused(true);
      if (command == static_cast<char>(Command::kResume)) state_.SetPaused(false);
    }
  }

  void Work() {
    if (settings_.watch || settings_.options.counters) state_.Watch();
    if (state_.WaitForWatch()) {
      OpenNvml();
      std::thread counters;
      if (settings_.options.counters) counters = std::thread([this] { SampleCounters(); });
      if (!settings_.options.counters) sender_.Send<char>(PacketKind::kReady, {});
      if (nvml_ && !settings_.options.no_clocks) Watch(*nvml_, state_, sender_);
      if (counters.joinable()) counters.join();
    }
    done_ = true;
    // Nothing is left to do, which also ends the wait for commands.
    ::shutdown(socket_, SHUT_RDWR);
  }

  void OpenNvml() {
    auto nvml = Nvml::Open(settings_.options.nvml_library);
    if (!nvml.ok()) return SendRefusal(sender_, false, nvml.error());
    nvml_ = *std::move(nvml);
    devices_ = nvml_->devices();
    sender_.Send<DevicePacket>(PacketKind::kDevice, devices_);
  }

  void SampleCounters() {
    ::prctl(PR_SET_NAME, "xpu-gpu-counter");
    auto sampling = CounterSampling::Open(settings_.options, devices_, sender_, state_.paused());
    sender_.Send<char>(PacketKind::kReady, {});
    if (!sampling.ok()) return SendRefusal(sender_, true, sampling.error());
    const Status status = (*sampling)->Run(
        [this] { return state_.paused(); },
        [this](milliseconds time) { return state_.SleepUntil(steady_clock::now() + time); });
    if (!status.ok()) SendRefusal(sender_, true, status.error());
  }

  const MetricsHelperSettings& settings_;
  const int socket_;
  const PacketSender sender_;
  HelperState state_;
  std::unique_ptr<Nvml> nvml_;
  std::vector<DevicePacket> devices_;
  std::atomic<bool> done_{false};
};

}  // namespace

std::vector<std::string> MetricsHelperSettings::ToArguments() const {
  std::string sets;
  for (const std::string& set : options.sets) sets += (sets.empty() ? "" : ",") + set;
  return {Format("watch={}", watch ? 1 : 0),
          Format("paused={}", paused ? 1 : 0),
          Format("no_clocks={}", options.no_clocks ? 1 : 0),
          Format("counters={}", options.counters ? 1 : 0),
          Format("interval={}", options.interval_ns),
          "sets=" + sets,
          "cupti=" + options.cupti_library,
          "nvml=" + options.nvml_library,
          "cuda=" + options.cuda_library};
}

MetricsHelperSettings MetricsHelperSettings::Parse(int argc, const char* const* argv) {
  MetricsHelperSettings settings;
  GpuMetricsOptions& options = settings.options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t end = std::min(argument.find('='), argument.size());
    const std::string_view key = argument.substr(0, end);
    const std::string_view value = argument.substr(std::min(end + 1, argument.size()));
    if (key == "watch") settings.watch = value == "1";
    if (key == "paused") settings.paused = value == "1";
    if (key == "no_clocks") options.no_clocks = value == "1";
    if (key == "counters") options.counters = value == "1";
    if (key == "interval") {
      options.interval_ns = ParseNumber<uint64_t>(value).value_or(options.interval_ns);
    }
    if (key == "sets") {
      for (const std::string_view set : Split(value, ",")) options.sets.emplace_back(set);
    }
    if (key == "cupti") options.cupti_library = value;
    if (key == "nvml") options.nvml_library = value;
    if (key == "cuda") options.cuda_library = value;
  }
  return settings;
}

bool IsMetricsHelper(int argc, char** argv) {
  return argc > 0 && std::string_view(argv[0]) == kMetricsHelperName;
}

int RunMetricsHelper(int argc, char** argv) {
  const MetricsHelperSettings settings = MetricsHelperSettings::Parse(argc, argv);
  return Helper(settings, STDIN_FILENO).Run();
}

}  // namespace xpu
