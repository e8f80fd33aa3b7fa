#include "record/gpu_metrics/counter_sampling.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "format/base/text.h"
#include "record/base/clock.h"

namespace xpu::gpu_metrics {
namespace {

using std::chrono::milliseconds;

// On an H100 a sample takes about 3 KB of it: four seconds at the usual interval.
constexpr size_t kHardwareBufferBytes = size_t{64} << 20;
// CUPTI drops what does not fit into its memory of decoded samples, and decoding may have to wait:
// at a program's start for 50 ms there. A sample takes 21 KB, and twice as many have room.
constexpr uint64_t kDecodedNs = 100'000'000;
constexpr uint32_t kLeastDecoded = 64;
constexpr uint32_t kMostDecoded = 512;
// Decoding a sample takes 50 to 90 us there: half a core for all GPUs together.
constexpr uint64_t kUsualIntervalNs = 200'000;
constexpr uint64_t kIntervalPerGpuNs = 100'000;
constexpr int kMostFailures = 20;  // in a row
constexpr milliseconds kDecodeInterval{10};
constexpr uint64_t kClockIntervalNs = 1'000'000'000;

// What a stored 1 is, in thousandths of the unit.
uint32_t QuantumOf(const FoundCounter& counter) {
  if (counter.unit == "%") return 10;                  // 0.01 %
  if (counter.unit == "bytes") return 4096 * 1000;     // at 3 TB/s a ten-thousandth of 20 us
  return counter.source.ends_with(".sum") ? 1000 : 1;  // as it is
}

template <size_t kSize>
void SetText(char (&field)[kSize], const std::string& text) {
  field[text.copy(field, kSize - 1)] = '\0';
}

// The number of the GPU with that UUID.
uint32_t NumberOf(const CounterDevice& device, std::vector<DevicePacket>& devices,
                  const PacketSender& sender) {
  for (const DevicePacket& known : devices) {
    if (std::memcmp(known.uuid, device.uuid, sizeof(known.uuid)) == 0) return known.gpu;
  }
  // NVML does not have it: it is missing, or this is a part of a GPU (MIG).
  DevicePacket added{};
  added.gpu = static_cast<uint32_t>(devices.size() + 1);
  added.index = static_cast<uint32_t>(device.index);
  std::memcpy(added.uuid, device.uuid, sizeof(added.uuid));
  SetText(added.name, device.name);
  devices.push_back(added);
  sender.SendOne(PacketKind::kDevice, added);
  return added.gpu;
}

void SendRefusal(const PacketSender& sender, const std::string& reason) {
  RefusedPacket packet{};
  packet.is_counters = true;
  SetText(packet.reason, reason);
  sender.SendOne(PacketKind::kRefused, packet);
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

// ---- all GPUs ----------------------------------------------------------------------------------

Result<std::unique_ptr<CounterSampling>> CounterSampling::Open(const GpuMetricsOptions& options,
                                                               std::vector<DevicePacket>& devices,
                                                               const PacketSender& sender,
                                                               bool paused) {
  std::unique_ptr<CounterSampling> sampling(new CounterSampling(sender, paused));
  XPU_ASSIGN_OR_RETURN(sampling->call_, CuptiFunctions::Load(options));
  const CuptiFunctions& call = *sampling->call_;
  int count = 0;
  if (call.cu_init(0) != 0 || call.device_count(&count) != 0 || count == 0) {
    return Error{ErrorKind::kNotFound, "the CUDA driver has no GPU", {}};
  }
  pm::Initialize initialize;
  if (const pm::Result code = call.initialize(&initialize); code != pm::kSuccess) {
    return call.ErrorOf("cuptiProfilerInitialize", code);
  }
  GpuMetricsOptions chosen = options;
  if (chosen.interval_ns == 0) {
    chosen.interval_ns =
        std::max(kUsualIntervalNs, kIntervalPerGpuNs * static_cast<uint64_t>(count));
  }
  Error last{ErrorKind::kUnsupported, "no GPU can sample counters", {}};
  uint32_t next_metric = 1;
  for (int index = 0; index < count; ++index) {
    Result<CounterDevice> device = CounterDevice::Open(call, static_cast<size_t>(index));
    if (!device.ok()) {
      last = device.error();
      if (count > 1) SendRefusal(sender, Format("GPU {}: {}", index, last.message));
      continue;
    }
    const uint32_t gpu = NumberOf(*device, devices, sender);
    auto counters = GpuCounters::Open(call, *device, gpu, next_metric, chosen, sender);
    Status started = Ok();
    if (!counters.ok()) started = counters.error();
    if (counters.ok() && !paused) started = (*counters)->Start();
    if (!started.ok()) {
      last = std::move(started).error();
      if (count > 1) SendRefusal(sender, Format("GPU {}: {}", index, last.message));
      continue;
    }
    if (!(*counters)->left_out().empty()) {
      SendRefusal(sender, Format("GPU {} does not count these together with the others: {}", index,
                                 Joined((*counters)->left_out())));
    }
    // The values of a sample are those of eight metrics in a row.
    next_metric += static_cast<uint32_t>((*counters)->count());
    sampling->gpus_.push_back(*std::move(counters));
  }
  if (sampling->gpus_.empty()) return last;
  return sampling;
}

CounterSampling::~CounterSampling() = default;

// Samples are on the clock of cuptiGetTimestamp. If they are not, which is seen by when they
// arrive, the smallest delay of the last second relates the clocks: a sample is late by a few
// intervals.
bool CounterSampling::SendClockPair() {
  constexpr int64_t kMostDelayNs = 200'000'000;
  ClockPacket pair{};
  pair.before_ns = MonotonicNs();
  if (call_->timestamp(&pair.clock_ns) != pm::kSuccess) return false;
  pair.after_ns = MonotonicNs();
  std::optional<int64_t> least_ns;
  for (const auto& gpu : gpus_) {
    const std::optional<int64_t> delay_ns = gpu->TakeLeastDelay();
    if (delay_ns && (!least_ns || *delay_ns < *least_ns)) least_ns = delay_ns;
  }
  if (!least_ns) return false;
  if (std::abs(*least_ns) > kMostDelayNs) pair.clock_ns -= static_cast<uint64_t>(*least_ns);
  return sender_.SendOne(PacketKind::kClock, pair);
}

Status CounterSampling::Run(const IsPaused& is_paused, const Sleep& sleep) {
  uint64_t next_pair_ns = 0;
  for (bool goes_on = true; goes_on;) {
    goes_on = sleep(kDecodeInterval);
    const bool paused = is_paused();
    for (const auto& gpu : gpus_) {
      if (!goes_on || (paused && !paused_)) gpu->Stop();
      if (!paused && paused_ && goes_on) XPU_RETURN_IF_ERROR(gpu->Start());
      XPU_RETURN_IF_ERROR(gpu->Decode());
    }
    paused_ = paused;
    const uint64_t now_ns = MonotonicNs();
    if ((now_ns >= next_pair_ns || !goes_on) && SendClockPair()) {
      next_pair_ns = now_ns + kClockIntervalNs;
    }
  }
  return Ok();
}

// ---- one GPU -----------------------------------------------------------------------------------

Result<std::unique_ptr<GpuCounters>> GpuCounters::Open(const CuptiFunctions& call,
                                                       const CounterDevice& device, uint32_t gpu,
                                                       uint32_t first_metric,
                                                       const GpuMetricsOptions& options,
                                                       const PacketSender& sender) {
  std::unique_ptr<GpuCounters> counters(new GpuCounters(call, gpu, first_metric, options, sender));
  XPU_RETURN_IF_ERROR(counters->Configure(device, options));
  for (size_t i = 0; i < counters->counters_.size(); ++i) counters->SendMetric(i);
  return counters;
}

Status GpuCounters::Configure(const CounterDevice& device, const GpuMetricsOptions& options) {
  half_ = static_cast<size_t>(
      std::clamp<uint64_t>(kDecodedNs / interval_ns_, kLeastDecoded, kMostDecoded));
  counters_ = FitCounters(call_, device, WantedCounters(options.sets), left_out_);
  if (counters_.empty()) {
    return Error{ErrorKind::kUnsupported,
                 Format("{} ({}) has none of these counters: {}", device.name, device.chip,
                        Joined(left_out_)),
                 "xpu-record --list-gpu-metrics lists those that it has"};
  }
  std::vector<std::string> sources;
  std::vector<std::string> shares;
  for (size_t i = 0; i < counters_.size(); ++i) {
    sources.push_back(counters_[i].source);
    if (counters_[i].unit != "bytes") continue;
    shares.push_back(counters_[i].source + ".pct_of_peak_sustained_elapsed");
    counter_of_share_.push_back(i);
  }
  // Of the share also the cycles are counted, so it has to be a part of the configuration.
  if (!shares.empty()) {
    std::vector<std::string> all = sources;
    all.insert(all.end(), shares.begin(), shares.end());
    auto config = CounterConfig::Make(call_, device.chip, device.availability, all);
    has_shares_ = config.ok() && (*config)->passes() == 1;
    if (has_shares_) config_ = *std::move(config);
  }
  if (!has_shares_) {
    XPU_ASSIGN_OR_RETURN(config_,
                         CounterConfig::Make(call_, device.chip, device.availability, sources));
  }
  peaks_.resize(counters_.size());
  values_.resize(counters_.size());
  remainders_.resize(counters_.size());

  device_ = device.index;
  return Enable();
}

Status GpuCounters::Enable() {
  pm::Enable enable;
  enable.device = device_;
  pm::Result code = call_.enable(&enable);
  if (code == pm::kErrorInvalidContext || code == pm::kErrorNotInitialized) {
    // No version is known to need one; the device's own context, then, and not more than once.
    int handle = 0;
    void* context = nullptr;
    if (call_.device_get(&handle, static_cast<int>(device_)) == 0 &&
        call_.retain_context(&context, handle) == 0 && call_.set_context(context) == 0) {
      code = call_.enable(&enable);
    }
  }
  if (code != pm::kSuccess) return call_.ErrorOf("cuptiPmSamplingEnable", code);
  sampling_ = enable.sampling;
  pm::SetConfig config;
  config.sampling = sampling_;
  config.config_bytes = config_->image().size();
  config.config = config_->image().data();
  config.hardware_buffer_bytes = kHardwareBufferBytes;
  config.interval = interval_ns_;
  code = call_.set_config(&config);
  if (code != pm::kSuccess) return call_.ErrorOf("cuptiPmSamplingSetConfig", code);
  pm::DataSize size;
  size.sampling = sampling_;
  size.names = config_->names().data();
  size.count = config_->names().size();
  size.most_samples = 2 * half_;
  code = call_.data_size(&size);
  if (code != pm::kSuccess) return call_.ErrorOf("cuptiPmSamplingGetCounterDataSize", code);
  empty_data_.resize(size.bytes);
  pm::DataInitialize initialize;
  initialize.sampling = sampling_;
  initialize.bytes = empty_data_.size();
  initialize.data = empty_data_.data();
  code = call_.data_initialize(&initialize);
  if (code != pm::kSuccess) {
    return call_.ErrorOf("cuptiPmSamplingCounterDataImageInitialize", code);
  }
  EmptyData();
  return Ok();
}

GpuCounters::~GpuCounters() { Disable(); }

void GpuCounters::Disable() {
  if (sampling_ == nullptr) return;
  Stop();
  pm::OfSampling disable;
  disable.sampling = std::exchange(sampling_, nullptr);
  static_cast<void>(call_.disable(&disable));
}

// A copy of the initialized image takes a tenth of what CUPTI needs to make one.
void GpuCounters::EmptyData() {
  data_ = empty_data_;
  taken_ = 0;
}

Status GpuCounters::Start() {
  pm::OfSampling start;
  start.sampling = sampling_;
  if (const pm::Result code = call_.start(&start); code != pm::kSuccess) {
    return call_.ErrorOf("cuptiPmSamplingStart", code);
  }
  is_running_ = true;
  is_first_ = true;
  EmptyData();
  return Ok();
}

void GpuCounters::Stop() {
  if (!is_running_) return;
  pm::OfSampling stop;
  stop.sampling = sampling_;
  static_cast<void>(call_.stop(&stop));
  is_running_ = false;
}

Status GpuCounters::Decode() {
  constexpr int kMostRounds = 64;  // between two sleeps
  bool is_full = true;
  for (int round = 0; is_full && round < kMostRounds; ++round) {
    if (!DecodeOnce(is_full)) XPU_RETURN_IF_ERROR(Restart());
  }
  if (is_gone_) return Error{ErrorKind::kSystem, "the recorder has ended", {}};
  if (!is_running_) last_end_ns_ = 0;  // the time until it is started again is not lost
  return Ok();
}

// False: samples were lost.
bool GpuCounters::DecodeOnce(bool& is_full) {
  pm::Decode decode;
  decode.sampling = sampling_;
  decode.data = data_.data();
  decode.bytes = data_.size();
  const pm::Result code = call_.decode(&decode);
  TakeSamples();
  is_full = code == pm::kSuccess && decode.stopped == pm::kStoppedDataFull;
  return code == pm::kSuccess && decode.overflow == 0;
}

// The hardware stops at the end of its buffer, and every later call fails. Starting anew is tried
// first; then also setting up anew, which takes 160 ms.
Status GpuCounters::Restart() {
  if (!is_running_) return Ok();
  if (++failures_ > kMostFailures) {
    return Error{ErrorKind::kSystem, Format("samples of GPU {} cannot be decoded", device_), {}};
  }
  Stop();
  if (failures_ > 1) {
    Disable();
    XPU_RETURN_IF_ERROR(Enable());
  }
  return Start();
}

void GpuCounters::TakeSamples() {
  pm::DataInfo info;
  info.data = data_.data();
  info.bytes = data_.size();
  if (call_.data_info(&info) != pm::kSuccess || info.completed <= taken_) return;
  for (; taken_ < info.completed; ++taken_) TakeSample(taken_);
  if (taken_ >= half_) EmptyData();
  uint64_t now_ns = 0;
  if (call_.timestamp(&now_ns) == pm::kSuccess && last_end_ns_ != 0) {
    const auto delay_ns = static_cast<int64_t>(now_ns - last_end_ns_);
    least_delay_ns_ = std::min(least_delay_ns_.value_or(delay_ns), delay_ns);
  }
  if (!sender_.Send<SamplePacket>(PacketKind::kSamples, packets_)) is_gone_ = true;
  packets_.clear();
}

void GpuCounters::TakeSample(size_t index) {
  pm::SampleInfo times;
  times.sampling = sampling_;
  times.data = data_.data();
  times.bytes = data_.size();
  times.index = index;
  if (call_.sample_info(&times) != pm::kSuccess || !config_->Evaluate(data_, index, 0, values_)) {
    return;
  }
  failures_ = 0;
  // The first one after a start begins when sampling was set up.
  const bool is_first = std::exchange(is_first_, false);
  if (is_first && times.end_ns - times.start_ns > interval_ns_ * 3 / 2) return;
  if (last_end_ns_ != 0 && times.start_ns > last_end_ns_ + interval_ns_ / 2) {
    const uint64_t missing = (times.start_ns - last_end_ns_ + interval_ns_ / 2) / interval_ns_;
    sender_.SendOne(PacketKind::kLost, LostPacket{std::max<uint64_t>(missing, 1), gpu_});
  }
  last_end_ns_ = times.end_ns;
  if (has_shares_) FindPeaks(times, index);
  for (size_t first = 0; first < counters_.size(); first += kValuesPerSample) {
    SamplePacket packet{
        times.start_ns, times.end_ns, gpu_, first_metric_ + static_cast<uint32_t>(first), {}};
    const size_t end = std::min(first + kValuesPerSample, counters_.size());
    for (size_t i = first; i < end; ++i) {
      const double exact = std::isfinite(values_[i]) ? std::max(values_[i], 0.0) : 0.0;
      const double scaled = exact * 1000 / QuantumOf(counters_[i]) + remainders_[i];
      const double stored = std::max(0.0, std::floor(scaled + 0.5));
      remainders_[i] = scaled - stored;
      packet.values[i - first] = static_cast<uint64_t>(std::min(stored, 1e18));
    }
    packets_.push_back(packet);
  }
}

// From a sample that has bytes enough: bytes per second at 100 %.
void GpuCounters::FindPeaks(const pm::SampleInfo& times, size_t index) {
  constexpr double kEnough = 5;  // percent
  std::vector<double> shares(counter_of_share_.size());
  if (times.end_ns <= times.start_ns ||
      !config_->Evaluate(data_, index, counters_.size(), shares)) {
    has_shares_ = false;
    return;
  }
  bool are_known = true;
  for (size_t i = 0; i < shares.size(); ++i) {
    const size_t counter = counter_of_share_[i];
    if (peaks_[counter] == 0 && shares[i] >= kEnough && shares[i] <= 101) {
      const double per_second =
          values_[counter] * 1e9 / static_cast<double>(times.end_ns - times.start_ns);
      peaks_[counter] = static_cast<uint64_t>(per_second * 100 / shares[i]);
      SendMetric(counter);
    }
    are_known = are_known && peaks_[counter] != 0;
  }
  if (are_known) has_shares_ = false;
}

void GpuCounters::SendMetric(size_t counter) {
  const FoundCounter& found = counters_[counter];
  MetricPacket packet{};
  packet.metric = first_metric_ + static_cast<uint32_t>(counter);
  packet.gpu = gpu_;
  packet.quantum = QuantumOf(found);
  packet.peak = peaks_[counter];
  packet.interval = interval_ns_;
  SetText(packet.name, found.name);
  SetText(packet.source, found.source);
  SetText(packet.unit, found.unit);
  sender_.SendOne(PacketKind::kMetric, packet);
}

}  // namespace xpu::gpu_metrics
