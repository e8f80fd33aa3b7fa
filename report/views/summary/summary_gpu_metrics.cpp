#include "report/views/summary/summary_gpu_metrics.h"

#include <algorithm>
#include <string>
#include <utility>

#include "format/base/text.h"
#include "report/output/text.h"
#include "report/query/gpu_metrics.h"

namespace xpu {
namespace {

constexpr char kMetricTable[] = "--top --table gpu_metric_sum";
constexpr char kThrottleTable[] = "--top --table gpu_throttle_sum";

std::string NumberOrDash(double value, const char* unit) {
  return value <= 0 ? "-" : Format("{:.0f} {}", value, unit);
}

void WriteConditions(const std::vector<GpuConditions>& all, SummaryText& text) {
  if (all.empty()) return;
  text.Heading("GPU clocks and power", ", mean over the recording");
  text.Names("   SM clock        max     power     limit    energy  temp  GPU");
  for (const GpuConditions& of : all) {
    const GpuDevice* device = of.gpu.device;
    const std::string energy = of.energy_j <= 0 ? "-" : Format("{:.0f} J", of.energy_j);
    const std::string temperature =
        of.temperature_peak == 0 ? "-" : Format("{} C", of.temperature_peak);
    text.Row(Format("  {:>9} {:>10} {:>9} {:>9} {:>9} {:>5}  ", NumberOrDash(of.sm_clock, "MHz"),
                    NumberOrDash(device == nullptr ? 0 : device->max_sm_clock, "MHz"),
                    NumberOrDash(of.power, "W"),
                    NumberOrDash(device == nullptr ? 0 : device->power_limit / 1e3, "W"), energy,
                    temperature),
             Format("{} {}", of.gpu.NumberText(), of.gpu.name));
  }
  text.Names(Format("  why clocks were low: {}", kThrottleTable));
}

void WriteCounters(const std::vector<GpuCounterUse>& all, SummaryText& text) {
  if (all.empty()) return;
  text.Heading("GPU counters", ", mean over the recording");
  text.Names("  of peak%       mean        max   samples  GPU, metric");
  for (const GpuCounterUse& use : all) {
    for (size_t i = 0; i < use.metrics.size(); ++i) {
      const MetricInfo& info = use.metrics[i];
      const MetricSum& sum = use.sums[i];
      const double percent = use.PercentOfPeak(i, sum);
      const auto value = [&](double number) {
        return info.unit == "%"
                   ? Format("{:.1f} %", number)
                   : Format("{:.1f}{}{}", number, info.unit.empty() ? "" : " ", info.unit);
      };
      text.Row(
          Format("  {:>8} {:>10} {:>10} {:>9}  ", percent < 0 ? "-" : Format("{:.1f}", percent),
                 value(sum.Average()), value(sum.most), WithThousands(sum.samples)),
          Format("{} {}", use.gpu.NumberText(), info.name));
    }
  }
  text.Names(Format("  by kernel: {}", kMetricTable));
}

}  // namespace

void WriteGpuMetrics(const Analysis& analysis, SummaryText& text) {
  const GpuNames names(analysis, KernelNames::kShort);
  WriteConditions(FindGpuConditions(analysis), text);
  WriteCounters(FindCounterUse(analysis, false, names), text);
}

}  // namespace xpu
