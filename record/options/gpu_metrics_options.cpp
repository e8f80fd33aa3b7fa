#include "record/options/gpu_metrics_options.h"

#include <algorithm>

#include "format/base/nearest_names.h"
#include "format/base/split.h"
#include "format/base/text.h"
#include "record/options/control_options.h"
#include "record/options/counter_kinds.h"

namespace xpu {
namespace {

constexpr char kListHint[] = "xpu-record --list-gpu-metrics lists them";

std::vector<std::string> KnownCounters() {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  for (const gpu_metrics::CounterKind& kind : gpu_metrics::CounterKinds()) add(kind.set);
  for (const gpu_metrics::CounterKind& kind : gpu_metrics::CounterKinds()) add(kind.name);
  return names;
}

Result<std::vector<std::string>> ParseSets(std::string_view text) {
  constexpr size_t kMostBytes = 4096;
  const std::vector<std::string> known = KnownCounters();
  std::vector<std::string> sets;
  for (const std::string_view name : Split(text, ",")) {
    // CUPTI's names have two underscores after the unit: "sm__cycles_active.avg".
    const bool is_cupti = name.find("__") != std::string_view::npos;
    if (!is_cupti && std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string near = NearestNames(known, std::string(name));
      return Error{ErrorKind::kUsage, Format("--gpu-metric-set: unknown set or metric '{}'", name),
                   near.empty() ? kListHint : Format("did you mean {}?", near)};
    }
    sets.emplace_back(name);
  }
  if (sets.empty() || text.size() > kMostBytes) {
    return Error{ErrorKind::kUsage, "--gpu-metric-set: expected names separated by commas",
                 kListHint};
  }
  return sets;
}

Result<uint64_t> ParseInterval(std::string_view text) {
  XPU_ASSIGN_OR_RETURN(const uint64_t interval_ns, ParseDuration("--gpu-metric-interval", text));
  if (interval_ns >= GpuMetricsOptions::kLeastIntervalNs &&
      interval_ns <= GpuMetricsOptions::kMostIntervalNs) {
    return interval_ns;
  }
  return Error{ErrorKind::kUsage, Format("--gpu-metric-interval: '{}' is out of range", text),
               "from 5us to 1s; the shorter, the more a recording costs"};
}

}  // namespace

Status ParseGpuMetrics(GpuMetricsOptions& options) {
  if (!options.set_text.empty()) {
    XPU_ASSIGN_OR_RETURN(options.sets, ParseSets(options.set_text));
  }
  if (!options.interval_text.empty()) {
    XPU_ASSIGN_OR_RETURN(options.interval_ns, ParseInterval(options.interval_text));
  }
  return Ok();
}

}  // namespace xpu
