// GPUs as a whole in the summary: their clocks, power and hardware counters, and hints about them.
#include <algorithm>
#include <optional>

#include "format/base/text.h"
#include "report/base/text.h"
#include "report/query/gpu_metrics.h"
#include "report/views/summary/summary_hints.h"
#include "report/views/summary/summary_sections.h"

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

constexpr char kCountersByKernel[] = "--top --table gpu_metric_sum";
constexpr char kReasonsOfClocks[] = "--top --table gpu_throttle_sum";
// Thresholds; below them a hint would be noise.
constexpr double kMuchCapped = 0.05;
constexpr double kNearPeak = 70;  // percent
constexpr uint64_t kEnoughSamples = 20;
constexpr double kLargePart = 0.05;  // of the samples that are attributed to a kernel

std::string GpuName(const MeasuredGpu& gpu) {
  return gpu.number ? Format("GPU {}", *gpu.number) : Format("The GPU {}", gpu.name);
}

void AddConditionHints(const GpuConditions& of, std::vector<Hint>& hints) {
  const double power = ThrottledShare(of, &ThrottleTime::is_power);
  const double thermal = ThrottledShare(of, &ThrottleTime::is_thermal);
  if (of.uncorrected_errors > 0) {
    hints.push_back({Format("{} had {} uncorrected memory {}.", GpuName(of.gpu),
                            of.uncorrected_errors, of.uncorrected_errors == 1 ? "error" : "errors"),
                     ""});
  }
  if (power >= kMuchCapped) {
    hints.push_back({Format("{} was power-capped for {} of the time: its clocks were {:.0f} MHz on "
                            "average. By reason:",
                            GpuName(of.gpu), ShareText(power), of.sm_clock),
                     kReasonsOfClocks});
  }
  if (thermal >= kMuchCapped) {
    hints.push_back({Format("{} was too hot for {} of the time ({} C at most), and lowered its "
                            "clocks. By reason:",
                            GpuName(of.gpu), ShareText(thermal), of.temperature_peak),
                     kReasonsOfClocks});
  }
}

// Reads and writes share the peak, which is that of one of them alone.
double DramPercent(const GpuCounterUse& use, const std::vector<MetricSum>& sums) {
  double percent = -1;
  for (const std::string_view name : {"dram_read", "dram_write"}) {
    const std::optional<size_t> metric = use.Find(name);
    if (!metric || *metric >= sums.size()) continue;
    const double part = use.PercentOfPeak(*metric, sums[*metric]);
    if (part >= 0) percent = std::max(percent, 0.0) + part;
  }
  return percent;
}

void AddCounterHint(const GpuCounterUse& use, std::vector<Hint>& hints) {
  uint64_t all = 0;
  for (const KernelMetrics& kernel : use.kernels) all += kernel.samples;
  for (const KernelMetrics& kernel : use.kernels) {
    if (kernel.samples < kEnoughSamples || ShareOf(kernel.samples, all) < kLargePart) continue;
    const double dram = DramPercent(use, kernel.sums);
    if (dram < kNearPeak) continue;
    hints.push_back(
        {Format("DRAM at {:.0f} % of its peak while `{}` ran: memory-bound. Counters by "
                "kernel:",
                std::min(dram, 100.0), kernel.name),
         kCountersByKernel});
    return;
  }
}

}  // namespace

void WriteGpuMetrics(const Analysis& analysis, SummaryText& text) {
  const GpuNames names(analysis, KernelNames::kShort);
  WriteConditions(FindGpuConditions(analysis), text);
  WriteCounters(FindCounterUse(analysis, false, names), text);
}

std::optional<Hint> FindXidHint(const Analysis& analysis) {
  if (analysis.gpus.xids().empty()) return std::nullopt;
  const auto& [number, xid] = *analysis.gpus.xids().begin();
  return Hint{Format("The driver reported Xid {} for GPU {}: an error of the GPU, the driver or a "
                     "program on it.",
                     xid, number),
              ""};
}

std::vector<Hint> FindGpuHints(const Analysis& analysis) {
  std::vector<Hint> hints;
  const GpuNames names(analysis, KernelNames::kShort);
  for (const GpuConditions& of : FindGpuConditions(analysis)) AddConditionHints(of, hints);
  for (const GpuCounterUse& use : FindCounterUse(analysis, true, names)) {
    AddCounterHint(use, hints);
  }
  return hints;
}

}  // namespace xpu
