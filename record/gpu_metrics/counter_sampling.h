// Samples the hardware counters of all GPUs that the program may use, in the helper process.
//
// The GPU writes samples into a buffer of its own, from which they are decoded every few
// milliseconds, on one thread for all GPUs. Where that is too slow the buffer fills up: sampling is
// started anew then, and what is missing is counted by the time between two samples. Times are on
// CUPTI's clock, which a pair of times each second relates to the recorder's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "record/gpu_metrics/cupti_counters.h"
#include "record/gpu_metrics/metrics_packets.h"
#include "record/gpu_metrics/packet_sender.h"
#include "record/options/gpu_metrics_options.h"

namespace xpu::gpu_metrics {

class GpuCounters;

class CounterSampling {
 public:
  // Sets up all GPUs and starts sampling, if at least one of them can do so; of the others a
  // refusal is sent. `devices`: those that are known by their UUID; others are added. `paused`:
  // sampling starts later.
  static Result<std::unique_ptr<CounterSampling>> Open(const GpuMetricsOptions& options,
                                                       std::vector<DevicePacket>& devices,
                                                       const PacketSender& sender, bool paused);
  ~CounterSampling();

  // Decodes and sends until `sleep` returns false, and what is left then.
  using IsPaused = std::function<bool()>;
  using Sleep = std::function<bool(std::chrono::milliseconds)>;
  Status Run(const IsPaused& is_paused, const Sleep& sleep);

 private:
  CounterSampling(const PacketSender& sender, bool paused) : sender_(sender), paused_(paused) {}
  bool SendClockPair();

  const PacketSender& sender_;
  bool paused_;
  std::unique_ptr<CuptiFunctions> call_;
  std::vector<std::unique_ptr<GpuCounters>> gpus_;
};

// The sampling of one GPU. Used by one thread.
class GpuCounters {
 public:
  // `first_metric`: the number that its first counter gets.
  static Result<std::unique_ptr<GpuCounters>> Open(const CuptiFunctions& call,
                                                   const CounterDevice& device, uint32_t gpu,
                                                   uint32_t first_metric,
                                                   const GpuMetricsOptions& options,
                                                   const PacketSender& sender);
  GpuCounters(const GpuCounters&) = delete;
  GpuCounters& operator=(const GpuCounters&) = delete;
  ~GpuCounters();

  Status Start();
  void Stop();
  // Sends what the GPU has written until now. False: the recorder is gone, or decoding fails.
  Status Decode();
  // How long after its end the most recent sample was decoded, by cuptiGetTimestamp: the least
  // since the last call. nullopt: there was no sample.
  std::optional<int64_t> TakeLeastDelay() { return std::exchange(least_delay_ns_, std::nullopt); }
  size_t count() const { return counters_.size(); }
  // Counters that were asked for and do not fit, or are not there.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  GpuCounters(const CuptiFunctions& call, uint32_t gpu, uint32_t first_metric,
              const GpuMetricsOptions& options, const PacketSender& sender)
      : call_(call),
        gpu_(gpu),
        first_metric_(first_metric),
        interval_ns_(options.interval_ns),
        sender_(sender) {}
  Status Configure(const CounterDevice& device, const GpuMetricsOptions& options);
  Status Enable();
  void Disable();
  bool DecodeOnce(bool& is_full);
  void EmptyData();
  void TakeSamples();
  void TakeSample(size_t index);
  void FindPeaks(const pm::SampleInfo& times, size_t index);
  void SendMetric(size_t counter);
  Status Restart();

  const CuptiFunctions& call_;
  const uint32_t gpu_;
  const uint32_t first_metric_;
  const uint64_t interval_ns_;
  const PacketSender& sender_;
  std::vector<FoundCounter> counters_;
  std::vector<std::string> left_out_;
  std::unique_ptr<CounterConfig> config_;
  // The last metrics of the configuration: the share of the peak that counters of bytes reach. They
  // are evaluated only until the peak is known by them.
  bool has_shares_ = false;
  std::vector<size_t> counter_of_share_;
  std::vector<uint64_t> peaks_;
  size_t device_ = 0;  // CUDA's number
  void* sampling_ = nullptr;
  bool is_running_ = false;
  bool is_first_ = false;            // the next sample is the first since the start
  int failures_ = 0;                 // since the last sample
  std::vector<uint8_t> empty_data_;  // initialized, without samples
  std::vector<uint8_t> data_;
  size_t half_ = 0;   // so many samples fill half of data_: then it is emptied
  size_t taken_ = 0;  // samples of data_ that have been sent
  std::vector<double> values_;
  std::vector<double> remainders_;  // of rounding, added to the next value
  std::vector<SamplePacket> packets_;
  uint64_t last_end_ns_ = 0;  // of the sample before; 0: there is none
  std::optional<int64_t> least_delay_ns_;
  bool is_gone_ = false;  // the recorder
};

}  // namespace xpu::gpu_metrics
