// PM sampling of the simulated device: samples whose values tests know, of any metric, at the
// interval that was asked for, on CUPTI's clock. One process at a time may sample a device, as on
// the real one.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>

#include "../settings.h"
#include "cupti_inject/cupti_versions.h"
#include "cupti_inject/pm_abi.h"
#include "since.h"

extern "C" int cuptiGetTimestamp(uint64_t* timestamp);

namespace xpu::fake_cupti {
namespace {

using fake_cuda::EnvNumber;

constexpr pm::Result kInvalidParameter = 1;
constexpr pm::Result kInvalidMetricName = 17;

// The configuration image is the number of passes.
struct Host {
  std::vector<std::string> metrics;
};

struct Sample {
  uint64_t start_ns;
  uint64_t end_ns;
};

// The counter data image: a header, then samples.
struct Data {
  uint64_t most;
  uint64_t count;
  Sample samples[];
};

struct Sampling {
  uint64_t interval_ns = 0;
  uint64_t passes = 0;
  bool is_running = false;
  bool overflowed = false;
  bool is_first = false;
  uint64_t taken_ns = 0;  // up to here samples were decoded
  uint64_t stopped_ns = 0;
  uint64_t decodes = 0;
};

uint64_t Now() {
  uint64_t now_ns = 0;
  cuptiGetTimestamp(&now_ns);
  return now_ns;
}

// Half of the time busy, in turns of 10 ms: what a metric is in a sample depends on its middle.
double ValueOf(std::string_view metric, const Sample& sample) {
  constexpr uint64_t kTurnNs = 10'000'000;
  const auto ns = static_cast<double>(sample.end_ns - sample.start_ns);
  const bool is_busy = sample.start_ns / kTurnNs % 2 == 0;
  if (metric.find("pct") != std::string_view::npos) {
    if (metric.find("dram") != std::string_view::npos) return is_busy ? 50 : 0;
    return is_busy ? 80 : 0;
  }
  // 1,500 bytes a nanosecond: 1.5 TB/s.
  return is_busy ? 1500 * ns : 0;
}

}  // namespace

extern "C" {

pm::Result cuptiProfilerInitialize(pm::Initialize*) { return pm::kSuccess; }
pm::Result cuptiDeviceGetChipName(pm::GetChipName* params) {
  params->chip = "SIM100";
  return pm::kSuccess;
}
static pm::Result GetCounterAvailability(pm::GetCounterAvailability* params) {
  if (const uint64_t error = EnvNumber("XPU_FAKE_PM_ERROR", 0)) {
    return static_cast<pm::Result>(error);
  }
  params->image_bytes = 8;
  if (params->image != nullptr) std::memset(params->image, 1, 8);
  return pm::kSuccess;
}
XPU_SINCE(cupti::kFirstWithPmSampling, cuptiPmSamplingGetCounterAvailability,
          GetCounterAvailability)

pm::Result cuptiProfilerHostInitialize(pm::HostInitialize* params) {
  if (params->params.size != sizeof(pm::HostInitialize)) return kInvalidParameter;
  params->host = new Host;
  return pm::kSuccess;
}
pm::Result cuptiProfilerHostDeinitialize(pm::HostDeinitialize* params) {
  delete static_cast<Host*>(params->host);
  return pm::kSuccess;
}
pm::Result cuptiProfilerHostGetBaseMetrics(pm::HostBaseMetrics* params) {
  // The tensor cores have only a counter in a group.
  static const char* names[] = {"sm__cycles_active", "TPC.TriageSim.sm__pipe_tensor_cycles_active",
                                "dram__read_bytes", "dram__write_bytes"};
  params->names = names;
  params->count = params->type == 0 ? std::size(names) : 0;
  return pm::kSuccess;
}
pm::Result cuptiProfilerHostConfigAddMetrics(pm::HostAddMetrics* params) {
  auto* host = static_cast<Host*>(params->host);
  for (size_t i = 0; i < params->count; ++i) {
    const std::string name = params->names[i];
    // Of this device there are those of the memory under one of their names.
    if (name.find("__") == std::string::npos || name.starts_with("dram__bytes") ||
        name.starts_with("sm__pipe_tensor")) {
      return kInvalidMetricName;
    }
    host->metrics.push_back(name);
  }
  return pm::kSuccess;
}
pm::Result cuptiProfilerHostGetConfigImageSize(pm::HostConfigSize* params) {
  params->bytes = sizeof(uint64_t);
  return pm::kSuccess;
}
pm::Result cuptiProfilerHostGetConfigImage(pm::HostConfigImage* params) {
  const uint64_t per_pass = EnvNumber("XPU_FAKE_PM_METRICS_PER_PASS", 8);
  const uint64_t metrics = static_cast<Host*>(params->host)->metrics.size();
  const uint64_t passes = (metrics + per_pass - 1) / per_pass;
  std::memcpy(params->image, &passes, sizeof(passes));
  return pm::kSuccess;
}
pm::Result cuptiProfilerHostGetNumOfPasses(pm::HostPasses* params) {
  uint64_t passes = 0;
  std::memcpy(&passes, params->image, sizeof(passes));
  params->passes = passes;
  return pm::kSuccess;
}

pm::Result cuptiPmSamplingEnable(pm::Enable* params) {
  if (const uint64_t error = EnvNumber("XPU_FAKE_PM_ENABLE_ERROR", 0)) {
    return static_cast<pm::Result>(error);
  }
  // The lock ends with the process, as the driver's reservation does.
  const std::string lock(fake_cuda::EnvText("XPU_FAKE_PM_LOCK", ""));
  if (!lock.empty()) {
    const int fd = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) != 0) return pm::kErrorHardwareBusy;
  }
  params->sampling = new Sampling;
  return pm::kSuccess;
}
pm::Result cuptiPmSamplingDisable(pm::OfSampling* params) {
  delete static_cast<Sampling*>(params->sampling);
  return pm::kSuccess;
}
pm::Result cuptiPmSamplingSetConfig(pm::SetConfig* params) {
  auto* sampling = static_cast<Sampling*>(params->sampling);
  std::memcpy(&sampling->passes, params->config, sizeof(sampling->passes));
  sampling->interval_ns = params->interval;
  return sampling->passes == 1 ? pm::kSuccess : 27;  // NOT_SUPPORTED
}
pm::Result cuptiPmSamplingStart(pm::OfSampling* params) {
  auto* sampling = static_cast<Sampling*>(params->sampling);
  if (sampling->is_running) return pm::kErrorInvalidOperation;
  sampling->is_running = true;
  sampling->overflowed = false;
  sampling->is_first = true;
  sampling->taken_ns = Now();
  return pm::kSuccess;
}
pm::Result cuptiPmSamplingStop(pm::OfSampling* params) {
  auto* sampling = static_cast<Sampling*>(params->sampling);
  if (!sampling->is_running) return pm::kErrorInvalidOperation;
  sampling->is_running = false;
  sampling->stopped_ns = Now();
  return pm::kSuccess;
}
pm::Result cuptiPmSamplingGetCounterDataSize(pm::DataSize* params) {
  params->bytes = sizeof(Data) + params->most_samples * sizeof(Sample);
  return pm::kSuccess;
}
pm::Result cuptiPmSamplingCounterDataImageInitialize(pm::DataInitialize* params) {
  auto* data = reinterpret_cast<Data*>(params->data);
  data->most = (params->bytes - sizeof(Data)) / sizeof(Sample);
  data->count = 0;
  return pm::kSuccess;
}
// After XPU_FAKE_PM_OVERFLOW_AFTER calls the buffer has overflowed once: what was sampled since the
// last call, and until sampling is started anew, is gone.
pm::Result cuptiPmSamplingDecodeData(pm::Decode* params) {
  auto* sampling = static_cast<Sampling*>(params->sampling);
  auto* data = reinterpret_cast<Data*>(params->data);
  params->overflow = 0;
  params->stopped = 2;  // END_OF_RECORDS
  ++sampling->decodes;
  if (sampling->decodes == EnvNumber("XPU_FAKE_PM_OVERFLOW_AFTER", 0)) sampling->overflowed = true;
  if (sampling->overflowed) {
    params->overflow = 1;
    return pm::kErrorOutOfMemory;
  }
  const uint64_t until_ns = sampling->is_running ? Now() : sampling->stopped_ns;
  while (sampling->taken_ns + sampling->interval_ns <= until_ns) {
    if (data->count == data->most) {
      params->stopped = pm::kStoppedDataFull;
      break;
    }
    const uint64_t end_ns = sampling->taken_ns + sampling->interval_ns;
    // As on the real device the first one begins when sampling was set up.
    constexpr uint64_t kSetupNs = 500'000'000;
    const uint64_t before_ns = std::exchange(sampling->is_first, false) ? kSetupNs : 0;
    data->samples[data->count++] = {sampling->taken_ns - before_ns, end_ns};
    sampling->taken_ns = end_ns;
  }
  return pm::kSuccess;
}
pm::Result cuptiPmSamplingGetCounterDataInfo(pm::DataInfo* params) {
  const auto* data = reinterpret_cast<const Data*>(params->data);
  params->total = data->most;
  params->populated = params->completed = data->count;
  return pm::kSuccess;
}
pm::Result cuptiPmSamplingCounterDataGetSampleInfo(pm::SampleInfo* params) {
  const auto* data = reinterpret_cast<const Data*>(params->data);
  if (params->index >= data->count) return kInvalidParameter;
  params->start_ns = data->samples[params->index].start_ns;
  params->end_ns = data->samples[params->index].end_ns;
  return pm::kSuccess;
}
pm::Result cuptiProfilerHostEvaluateToGpuValues(pm::HostEvaluate* params) {
  const auto* data = reinterpret_cast<const Data*>(params->data);
  const auto* host = static_cast<const Host*>(params->host);
  if (params->index >= data->count) return kInvalidParameter;
  for (size_t i = 0; i < params->count; ++i) {
    // What was not configured was not counted.
    const bool is_counted = std::find(host->metrics.begin(), host->metrics.end(),
                                      params->names[i]) != host->metrics.end();
    params->values[i] = is_counted ? ValueOf(params->names[i], data->samples[params->index])
                                   : std::numeric_limits<double>::quiet_NaN();
  }
  return pm::kSuccess;
}

}  // extern "C"

}  // namespace xpu::fake_cupti
