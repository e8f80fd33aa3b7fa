// GPUs as a whole: clocks, power and hardware counters, over time and by kernel.
//
// They are measured for a GPU, not for a process: what other programs did on it meanwhile is part
// of them. A sample of counters is attributed to a kernel only if that kernel ran during at least
// nine tenths of the sample, and others for less than a tenth; kernels shorter than a sample have
// values only where many launches of them follow one another.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/gpu_names.h"

namespace xpu {

// A GPU of the machine.
struct MeasuredGpu {
  const GpuDevice* device = nullptr;
  std::optional<uint32_t> number;  // as the report numbers them; none: no recorded process uses it
  std::string name;                // "NVIDIA H100", or its index

  // "0", or "-" where it has no number.
  std::string NumberText() const { return number ? std::to_string(*number) : "-"; }
};
// In order of GpuDevice::gpu. GPUs that recorded processes use come first if `used_only` is false;
// otherwise only they, unless no device is known to be used.
std::vector<MeasuredGpu> MeasuredGpus(const Analysis& analysis);

// Why clocks were lower than they could be.
struct ThrottleTime {
  std::string_view reason;
  uint64_t ns = 0;
  uint64_t samples = 0;  // 0: counted by the driver, not sampled
  bool is_idle = false;  // because the GPU had nothing to do
  bool is_power = false;
  bool is_thermal = false;
};

// Whether something held the clocks down: not that there was nothing to do.
constexpr bool IsThrottled(uint64_t throttle_reasons) {
  return (throttle_reasons & ~uint64_t{1}) != 0;
}

// NVML's reports about one GPU.
struct GpuConditions {
  MeasuredGpu gpu;
  uint64_t samples = 0;
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;
  double sm_clock = 0;  // MHz, mean over time; so the next
  double memory_clock = 0;
  double power = 0;  // W
  double temperature = 0;
  double memory_bytes = 0;
  uint32_t sm_clock_peak = 0;
  uint32_t sm_clock_least = 0;
  double power_peak = 0;
  uint32_t temperature_peak = 0;
  uint64_t memory_bytes_peak = 0;
  double energy_j = 0;
  uint64_t corrected_errors = 0;  // during the recording
  uint64_t uncorrected_errors = 0;
  std::vector<ThrottleTime> throttled;

  uint64_t duration_ns() const { return to_ns - from_ns; }
};
std::vector<GpuConditions> FindGpuConditions(const Analysis& analysis);
// How long one of a GPU's states holds: until the next one; 100 ms if it is the last one or a pause
// of the recording follows, which is whatever is longer than 1 s.
uint64_t LastsNs(const std::vector<GpuState>& states, size_t index);
// How much of its time its clocks were low for reasons of this kind, 0 to 1: the larger of what was
// sampled and what the driver counted.
double ThrottledShare(const GpuConditions& of, bool ThrottleTime::*kind);

// ---- hardware counters -------------------------------------------------------------------------

// One counter of one GPU.
struct MetricInfo {
  std::string name;
  std::string unit;   // of Value: "%", "GB/s", or empty
  double factor = 1;  // from what is stored to the metric
  bool is_bytes = false;
  double peak_per_ns = 0;  // of bytes; 0: not known
};

// Values of samples, weighted by their duration.
struct MetricSum {
  uint64_t samples = 0;
  uint64_t ns = 0;
  double sum = 0;   // of bytes: all of them; otherwise value times nanoseconds
  double most = 0;  // of one sample, as Average

  void Add(const MetricInfo& info, double value, uint64_t duration_ns);
  double Average() const { return ns == 0 ? 0 : sum / static_cast<double>(ns); }
};

struct KernelMetrics {
  std::string name;
  uint64_t samples = 0;
  std::vector<MetricSum> sums;  // by metric
};

struct GpuCounterUse {
  MeasuredGpu gpu;
  std::vector<MetricInfo> metrics;
  std::vector<MetricSum> sums;         // of all samples, by metric
  std::vector<KernelMetrics> kernels;  // most samples first

  // The place of a metric; nullopt: it was not recorded.
  std::optional<size_t> Find(std::string_view name) const;
  // Returns the sum of a metric as percent of its peak. Negative: not known.
  double PercentOfPeak(size_t metric, const MetricSum& sum) const;
};
// With `by_kernel` also what ran during each sample, as far as it is selected.
std::vector<GpuCounterUse> FindCounterUse(const Analysis& analysis, bool by_kernel,
                                          const GpuNames& names);

// Each sample of counters in order of the file: on CLOCK_MONOTONIC, with the value of each metric
// of `infos`, which FindCounterUse() describes.
struct CounterSample {
  uint32_t gpu_device = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t first_metric = 0;            // number of the first value's metric
  std::array<uint64_t, 8> values = {};  // as stored
};
CounterSample SampleOf(const Analysis& analysis, const GpuMetricSample& sample);
// The key is GpuMetric::metric. Later definitions may know a peak.
std::map<uint32_t, MetricInfo> MetricInfos(const Analysis& analysis);

}  // namespace xpu
