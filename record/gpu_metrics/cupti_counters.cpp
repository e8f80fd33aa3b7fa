#include "record/gpu_metrics/cupti_counters.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <dlfcn.h>

#include "format/base/text.h"
#include "record/gpu_metrics/trusted_library.h"

namespace xpu::gpu_metrics {
namespace {

// Counts the functions of a library that are missing.
class LoadedLibrary {
 public:
  // Never closed: neither the driver nor CUPTI is made for that.
  explicit LoadedLibrary(const std::string& path)
      : path_(path), handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    const char* reason = handle_ == nullptr ? ::dlerror() : nullptr;
    if (reason != nullptr) reason_ = reason;
  }

  template <typename Function>
  void Get(Function& function, const char* symbol) {
    if (handle_ == nullptr) return;
    function = reinterpret_cast<std::decay_t<Function>>(::dlsym(handle_, symbol));
    if (function == nullptr && reason_.empty()) reason_ = Format("has no {}", symbol);
  }
  Status status(ErrorKind kind) const {
    if (reason_.empty()) return Ok();
    return Error{kind, Format("{}: {}", path_, reason_), {}};
  }

 private:
  const std::string path_;
  void* handle_;
  std::string reason_;
};

std::string HintFor(pm::Result code) {
  switch (code) {
    case pm::kErrorInsufficientPrivileges:
      return "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0";
    case pm::kErrorHardwareBusy:
    case pm::kErrorInvalidOperation:
      return "another profiler may hold the counters: ncu, nsys, DCGM";
    default:
      return {};
  }
}

}  // namespace

Result<std::unique_ptr<CuptiFunctions>> CuptiFunctions::Load(const GpuMetricsOptions& options) {
  auto call = std::make_unique<CuptiFunctions>();
  XPU_RETURN_IF_ERROR(call->LoadDriver(options.cuda_library));
  XPU_ASSIGN_OR_RETURN(const std::string cupti, FindCupti(options.cupti_library));
  XPU_RETURN_IF_ERROR(call->LoadCupti(cupti));
  return call;
}

// The driver is where the loader finds it: the process has no variables that could change that.
Status CuptiFunctions::LoadDriver(const std::string& library) {
  LoadedLibrary driver(library.empty() ? "libcuda.so.1" : library);
  driver.Get(cu_init, "cuInit");
  driver.Get(device_count, "cuDeviceGetCount");
  driver.Get(device_get, "cuDeviceGet");
  driver.Get(device_uuid, "cuDeviceGetUuid");
  driver.Get(device_name, "cuDeviceGetName");
  driver.Get(retain_context, "cuDevicePrimaryCtxRetain");
  driver.Get(set_context, "cuCtxSetCurrent");
  return driver.status(ErrorKind::kNotFound);
}

Status CuptiFunctions::LoadCupti(const std::string& library) {
  // CUPTI loads these by their names, without a place where to look: those that lie next to it are
  // found, because they are loaded already.
  const std::string directory = library.substr(0, library.rfind('/') + 1);
  for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"}) {
    const std::string path = directory + name;
    if (CheckTrusted(path).ok()) ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
  LoadedLibrary cupti(library);
  cupti.Get(result_string, "cuptiGetResultString");
  cupti.Get(timestamp, "cuptiGetTimestamp");
  cupti.Get(initialize, "cuptiProfilerInitialize");
  cupti.Get(chip_name, "cuptiDeviceGetChipName");
  cupti.Get(availability, "cuptiPmSamplingGetCounterAvailability");
  cupti.Get(host_initialize, "cuptiProfilerHostInitialize");
  cupti.Get(host_deinitialize, "cuptiProfilerHostDeinitialize");
  cupti.Get(base_metrics, "cuptiProfilerHostGetBaseMetrics");
  cupti.Get(add_metrics, "cuptiProfilerHostConfigAddMetrics");
  cupti.Get(config_size, "cuptiProfilerHostGetConfigImageSize");
  cupti.Get(config_image, "cuptiProfilerHostGetConfigImage");
  cupti.Get(passes, "cuptiProfilerHostGetNumOfPasses");
  cupti.Get(evaluate, "cuptiProfilerHostEvaluateToGpuValues");
  cupti.Get(enable, "cuptiPmSamplingEnable");
  cupti.Get(disable, "cuptiPmSamplingDisable");
  cupti.Get(set_config, "cuptiPmSamplingSetConfig");
  cupti.Get(start, "cuptiPmSamplingStart");
  cupti.Get(stop, "cuptiPmSamplingStop");
  cupti.Get(data_size, "cuptiPmSamplingGetCounterDataSize");
  cupti.Get(data_initialize, "cuptiPmSamplingCounterDataImageInitialize");
  cupti.Get(decode, "cuptiPmSamplingDecodeData");
  cupti.Get(data_info, "cuptiPmSamplingGetCounterDataInfo");
  cupti.Get(sample_info, "cuptiPmSamplingCounterDataGetSampleInfo");
  Status status = cupti.status(ErrorKind::kUnsupported);
  if (status.ok()) return status;
  return Error{ErrorKind::kUnsupported, status.error().message,
               "hardware counters need CUPTI 12.6 or newer"};
}

Error CuptiFunctions::ErrorOf(const char* operation, pm::Result code) const {
  const char* name = nullptr;
  if (result_string(code, &name) != pm::kSuccess) name = nullptr;
  return Error{
      code == pm::kErrorInsufficientPrivileges ? ErrorKind::kPermission : ErrorKind::kUnsupported,
      Format("{}: {}", operation, name == nullptr ? Format("error {}", code) : name),
      HintFor(code)};
}

// ---- configurations ----------------------------------------------------------------------------

Result<std::unique_ptr<CounterConfig>> CounterConfig::Make(const CuptiFunctions& call,
                                                           const std::string& chip,
                                                           const std::vector<uint8_t>& availability,
                                                           std::span<const std::string> metrics) {
  std::unique_ptr<CounterConfig> config(new CounterConfig(call));
  config->metrics_.assign(metrics.begin(), metrics.end());
  for (const std::string& metric : config->metrics_) config->names_.push_back(metric.c_str());
  pm::HostInitialize initialize;
  initialize.chip = chip.c_str();
  initialize.availability = availability.data();
  pm::Result code = call.host_initialize(&initialize);
  if (code != pm::kSuccess) return call.ErrorOf("cuptiProfilerHostInitialize", code);
  config->host_ = initialize.host;
  pm::HostAddMetrics add;
  add.host = config->host_;
  add.names = config->names_.data();
  add.count = config->names_.size();
  code = call.add_metrics(&add);
  if (code != pm::kSuccess) return call.ErrorOf("cuptiProfilerHostConfigAddMetrics", code);
  pm::HostConfigSize size;
  size.host = config->host_;
  code = call.config_size(&size);
  if (code != pm::kSuccess) return call.ErrorOf("cuptiProfilerHostGetConfigImageSize", code);
  config->image_.resize(size.bytes);
  pm::HostConfigImage image;
  image.host = config->host_;
  image.bytes = size.bytes;
  image.image = config->image_.data();
  code = call.config_image(&image);
  if (code != pm::kSuccess) return call.ErrorOf("cuptiProfilerHostGetConfigImage", code);
  pm::HostPasses passes;
  passes.bytes = size.bytes;
  passes.image = config->image_.data();
  code = call.passes(&passes);
  if (code != pm::kSuccess) return call.ErrorOf("cuptiProfilerHostGetNumOfPasses", code);
  config->passes_ = passes.passes;
  return config;
}

CounterConfig::~CounterConfig() {
  if (host_ == nullptr) return;
  pm::HostDeinitialize deinitialize;
  deinitialize.host = host_;
  static_cast<void>(call_.host_deinitialize(&deinitialize));
}

bool CounterConfig::Evaluate(std::span<const uint8_t> data, size_t index, size_t first,
                             std::span<double> values) {
  if (first + values.size() > names_.size()) return false;
  pm::HostEvaluate evaluate;
  evaluate.host = host_;
  evaluate.data = data.data();
  evaluate.data_bytes = data.size();
  evaluate.index = index;
  evaluate.names = names_.data() + first;
  evaluate.count = values.size();
  evaluate.values = values.data();
  return call_.evaluate(&evaluate) == pm::kSuccess;
}

std::vector<std::string> CounterConfig::MetricsOf(const CuptiFunctions& call,
                                                  const std::string& chip,
                                                  const std::vector<uint8_t>& availability) {
  std::vector<std::string> all;
  CounterConfig config(call);
  pm::HostInitialize initialize;
  initialize.chip = chip.c_str();
  initialize.availability = availability.data();
  if (call.host_initialize(&initialize) != pm::kSuccess) return all;
  config.host_ = initialize.host;
  for (uint32_t type = 0; type < pm::kMetricTypes; ++type) {
    pm::HostBaseMetrics metrics;
    metrics.host = config.host_;
    metrics.type = type;
    if (call.base_metrics(&metrics) != pm::kSuccess) continue;
    for (size_t i = 0; i < metrics.count; ++i) all.emplace_back(metrics.names[i]);
  }
  return all;
}

// ---- devices -----------------------------------------------------------------------------------

Result<CounterDevice> CounterDevice::Open(const CuptiFunctions& call, size_t index) {
  CounterDevice device;
  device.index = index;
  int handle = 0;
  if (call.device_get(&handle, static_cast<int>(index)) != 0 ||
      call.device_uuid(device.uuid, handle) != 0) {
    return Error{ErrorKind::kSystem, Format("cuDeviceGet {} failed", index), {}};
  }
  char name[96] = {};
  if (call.device_name(name, sizeof(name) - 1, handle) == 0) device.name = name;
  pm::GetChipName chip;
  chip.device = index;
  pm::Result code = call.chip_name(&chip);
  if (code != pm::kSuccess) return call.ErrorOf("cuptiDeviceGetChipName", code);
  device.chip = chip.chip;
  pm::GetCounterAvailability availability;
  availability.device = index;
  code = call.availability(&availability);
  if (code == pm::kSuccess) {
    device.availability.resize(availability.image_bytes);
    availability.image = device.availability.data();
    code = call.availability(&availability);
  }
  if (code != pm::kSuccess) return call.ErrorOf("cuptiPmSamplingGetCounterAvailability", code);
  device.metrics = CounterConfig::MetricsOf(call, device.chip, device.availability);
  return device;
}

namespace {

// The metric itself, and those of groups of counters that are sampled together, whose names end
// with it: "FBPA.TriageCompute.dramc__read_throughput".
std::vector<std::string> SourcesLike(const std::string& source, const CounterDevice& device) {
  std::vector<std::string> sources = {source};
  const size_t underscores = source.find("__");
  const size_t end =
      std::min(source.find('.', std::min(underscores, source.size())), source.size());
  const std::string ending = "." + source.substr(0, end);
  for (const std::string& metric : device.metrics) {
    if (metric.ends_with(ending)) sources.push_back(metric + source.substr(end));
  }
  return sources;
}

}  // namespace

std::vector<FoundCounter> FitCounters(const CuptiFunctions& call, const CounterDevice& device,
                                      const std::vector<WantedCounter>& wanted,
                                      std::vector<std::string>& left_out) {
  std::vector<FoundCounter> found;
  std::vector<std::string> metrics;
  const auto fits = [&](const std::string& source) {
    metrics.push_back(source);
    const auto config = CounterConfig::Make(call, device.chip, device.availability, metrics);
    if (config.ok() && config.value()->passes() == 1) return true;
    metrics.pop_back();
    return false;
  };
  for (const WantedCounter& counter : wanted) {
    bool is_found = false;
    for (const std::string& name : counter.sources) {
      for (const std::string& source : SourcesLike(name, device)) {
        if (is_found || !fits(source)) continue;
        is_found = true;
        const bool is_percent = source.find(".pct") != std::string::npos;
        found.push_back({counter.name, is_percent ? "%" : counter.unit, source});
      }
    }
    if (!is_found) left_out.push_back(counter.name);
  }
  return found;
}

}  // namespace xpu::gpu_metrics
