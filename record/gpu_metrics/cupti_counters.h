// The functions of CUPTI and of the CUDA driver that sampling of hardware counters needs, loaded by
// name into the helper process, and what they say of one GPU.
//
// CUPTI's PM sampling (12.6 and newer) observes a whole GPU from any process; no context is created
// on it and no program has to be changed. All metrics of a configuration have to fit into one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cupti_inject/pm_abi.h"
#include "format/base/result.h"
#include "record/options/counter_kinds.h"
#include "record/options/gpu_metrics_options.h"

namespace xpu::gpu_metrics {

// nullptr members do not occur: Load fails without any of them.
struct CuptiFunctions {
  // Both from libraries that CheckTrusted accepts.
  static Result<std::unique_ptr<CuptiFunctions>> Load(const GpuMetricsOptions& options);

  // "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", and what to do about it.
  Error ErrorOf(const char* operation, pm::Result code) const;

  int (*cu_init)(unsigned) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_uuid)(uint8_t*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*retain_context)(void**, int) = nullptr;
  int (*set_context)(void*) = nullptr;

  pm::Result (*result_string)(pm::Result, const char**) = nullptr;
  pm::Result (*timestamp)(uint64_t*) = nullptr;
  pm::Result (*initialize)(pm::Initialize*) = nullptr;
  pm::Result (*chip_name)(pm::GetChipName*) = nullptr;
  pm::Result (*availability)(pm::GetCounterAvailability*) = nullptr;
  pm::Result (*host_initialize)(pm::HostInitialize*) = nullptr;
  pm::Result (*host_deinitialize)(pm::HostDeinitialize*) = nullptr;
  pm::Result (*base_metrics)(pm::HostBaseMetrics*) = nullptr;
  pm::Result (*add_metrics)(pm::HostAddMetrics*) = nullptr;
  pm::Result (*config_size)(pm::HostConfigSize*) = nullptr;
  pm::Result (*config_image)(pm::HostConfigImage*) = nullptr;
  pm::Result (*passes)(pm::HostPasses*) = nullptr;
  pm::Result (*evaluate)(pm::HostEvaluate*) = nullptr;
  pm::Result (*enable)(pm::Enable*) = nullptr;
  pm::Result (*disable)(pm::OfSampling*) = nullptr;
  pm::Result (*set_config)(pm::SetConfig*) = nullptr;
  pm::Result (*start)(pm::OfSampling*) = nullptr;
  pm::Result (*stop)(pm::OfSampling*) = nullptr;
  pm::Result (*data_size)(pm::DataSize*) = nullptr;
  pm::Result (*data_initialize)(pm::DataInitialize*) = nullptr;
  pm::Result (*decode)(pm::Decode*) = nullptr;
  pm::Result (*data_info)(pm::DataInfo*) = nullptr;
  pm::Result (*sample_info)(pm::SampleInfo*) = nullptr;

 private:
  Status LoadDriver(const std::string& library);
  Status LoadCupti(const std::string& library);
};

// A set of metrics that one GPU can count at once.
class CounterConfig {
 public:
  // `availability`: of the device, from the same functions, which outlive this object.
  static Result<std::unique_ptr<CounterConfig>> Make(const CuptiFunctions& call,
                                                     const std::string& chip,
                                                     const std::vector<uint8_t>& availability,
                                                     std::span<const std::string> metrics);
  // The names of all metrics that the chip has.
  static std::vector<std::string> MetricsOf(const CuptiFunctions& call, const std::string& chip,
                                            const std::vector<uint8_t>& availability);
  CounterConfig(const CounterConfig&) = delete;
  CounterConfig& operator=(const CounterConfig&) = delete;
  ~CounterConfig();

  size_t passes() const { return passes_; }
  const std::vector<uint8_t>& image() const { return image_; }
  std::vector<const char*>& names() { return names_; }
  // The values of as many metrics, from the metric `first` on, in sample `index` of decoded data.
  bool Evaluate(std::span<const uint8_t> data, size_t index, size_t first,
                std::span<double> values);

 private:
  explicit CounterConfig(const CuptiFunctions& call) : call_(call) {}

  const CuptiFunctions& call_;
  void* host_ = nullptr;
  std::vector<std::string> metrics_;
  std::vector<const char*> names_;  // of metrics_
  std::vector<uint8_t> image_;
  size_t passes_ = 0;
};

// What CUPTI knows of a device before anything is sampled.
struct CounterDevice {
  static Result<CounterDevice> Open(const CuptiFunctions& call, size_t index);

  size_t index = 0;  // CUDA's
  uint8_t uuid[16] = {};
  std::string name;
  std::string chip;
  std::vector<uint8_t> availability;
  std::vector<std::string>
      metrics;  // without what follows the first point after the two underscores
};

// One counter as it is recorded: the metric of CUPTI that this GPU has for it.
struct FoundCounter {
  std::string name;
  std::string unit;
  std::string source;
};
// Those of `wanted` that the device can count together; `left_out`: the names of the others.
std::vector<FoundCounter> FitCounters(const CuptiFunctions& call, const CounterDevice& device,
                                      const std::vector<WantedCounter>& wanted,
                                      std::vector<std::string>& left_out);

}  // namespace xpu::gpu_metrics
