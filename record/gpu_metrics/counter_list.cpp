#include "record/gpu_metrics/counter_list.h"

#include <algorithm>
#include <vector>

#include "format/base/text.h"
#include "record/gpu_metrics/cupti_counters.h"
#include "record/options/counter_kinds.h"

namespace xpu {
namespace {

using namespace gpu_metrics;

// A device, and the name of each counter that it has.
struct ListedGpu {
  CounterDevice device;
  std::vector<std::string> counters;
};

Result<std::vector<ListedGpu>> FindGpus(const GpuMetricsOptions& options) {
  XPU_ASSIGN_OR_RETURN(const std::unique_ptr<CuptiFunctions> call, CuptiFunctions::Load(options));
  int count = 0;
  if (call->cu_init(0) != 0 || call->device_count(&count) != 0 || count == 0) {
    return Error{ErrorKind::kNotFound, "the CUDA driver has no GPU", {}};
  }
  pm::Initialize initialize;
  if (const pm::Result code = call->initialize(&initialize); code != pm::kSuccess) {
    return call->ErrorOf("cuptiProfilerInitialize", code);
  }
  std::vector<ListedGpu> gpus;
  for (int index = 0; index < count; ++index) {
    XPU_ASSIGN_OR_RETURN(CounterDevice device,
                         CounterDevice::Open(*call, static_cast<size_t>(index)));
    ListedGpu gpu{std::move(device), {}};
    for (const CounterKind& kind : CounterKinds()) {
      const std::vector<std::string> alone = {std::string(kind.name)};
      std::vector<std::string> left_out;
      const auto found = FitCounters(*call, gpu.device, WantedCounters(alone), left_out);
      if (!found.empty()) gpu.counters.emplace_back(kind.name);
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::string WhereIs(std::string_view counter, const std::vector<ListedGpu>& gpus) {
  std::string missing;
  for (const ListedGpu& gpu : gpus) {
    const auto& counters = gpu.counters;
    if (std::find(counters.begin(), counters.end(), counter) != counters.end()) continue;
    AppendFormat(missing, "{}{}", missing.empty() ? " (not on GPU " : ", ", gpu.device.index);
  }
  return missing.empty() ? missing : missing + ")";
}

}  // namespace

std::string GpuMetricList(const GpuMetricsOptions& options) {
  Result<std::vector<ListedGpu>> gpus = FindGpus(options);
  std::string text;
  if (gpus.ok()) {
    for (const ListedGpu& gpu : *gpus) {
      AppendFormat(text, "GPU {}: {} ({})\n", gpu.device.index, gpu.device.name, gpu.device.chip);
    }
  } else {
    AppendFormat(text, "No counters can be sampled here: {}\n", gpus.error().ToString());
  }
  std::string_view set;
  for (const CounterKind& kind : CounterKinds()) {
    if (kind.set != set) AppendFormat(text, "\n{}:\n", kind.set);
    set = kind.set;
    AppendFormat(text, "  {:<16} {}{}\n", kind.name, kind.about,
                 gpus.ok() ? WhereIs(kind.name, *gpus) : std::string());
  }
  text +=
      "\n--gpu-metric-set takes sets, single counters, and metrics of CUPTI such as\n"
      "sm__warps_active.avg.pct_of_peak_sustained_active, as far as they can be\n"
      "counted together.\n";
  return text;
}

}  // namespace xpu
