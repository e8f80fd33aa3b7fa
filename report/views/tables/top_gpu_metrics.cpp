// gpu_metric_sum: clocks, power and hardware counters of each GPU, and counters by kernel.
// gpu_throttle_sum: why clocks were low, and for how long.
#include <string>
#include <utility>
#include <vector>

#include "format/base/text.h"
#include "report/query/gpu_metrics.h"
#include "report/views/tables/top_cells.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

constexpr char kAll[] = "[all]";

struct MetricRow {
  std::string gpu;
  std::string metric;
  std::string unit;
  std::string kernel;
  double average = 0;
  double most = 0;
  double peak_percent = -1;  // negative: not known
  std::string total;         // empty: it is not summed
  uint64_t samples = 0;
};

void AddConditions(const GpuConditions& of, std::vector<MetricRow>& rows) {
  const auto add = [&](const char* metric, const char* unit, double average, double most,
                       double peak, std::string total = {}) {
    if (most <= 0) return;  // this GPU does not report it
    rows.push_back({of.gpu.NumberText(), metric, unit, kAll, average, most,
                    peak > 0 ? 100 * average / peak : -1, std::move(total), of.samples});
  };
  const GpuDevice none;
  const GpuDevice& device = of.gpu.device == nullptr ? none : *of.gpu.device;
  add("sm_clock", "MHz", of.sm_clock, of.sm_clock_peak, device.max_sm_clock);
  add("memory_clock", "MHz", of.memory_clock, of.memory_clock, device.max_memory_clock);
  add("power", "W", of.power, std::max(of.power_peak, of.power),
      static_cast<double>(device.power_limit) / 1000,
      of.energy_j > 0 ? Format("{:.1f} J", of.energy_j) : std::string());
  add("temperature", "C", of.temperature, of.temperature_peak, 0);
  add("memory_used", "MB", of.memory_bytes / 1e6, static_cast<double>(of.memory_bytes_peak) / 1e6,
      static_cast<double>(device.memory_bytes) / 1e6);
}

void AddCounters(const GpuCounterUse& use, const std::vector<MetricSum>& sums,
                 const std::string& kernel, std::vector<MetricRow>& rows) {
  for (size_t i = 0; i < sums.size(); ++i) {
    const MetricInfo& info = use.metrics[i];
    if (sums[i].samples == 0) continue;
    rows.push_back({use.gpu.NumberText(), info.name, info.unit, kernel, sums[i].Average(),
                    sums[i].most, use.PercentOfPeak(i, sums[i]),
                    info.is_bytes ? Megabytes(sums[i].sum) + " MB" : std::string(),
                    sums[i].samples});
  }
}

}  // namespace

void FillGpuMetrics(TableSource& source, Table& table) {
  std::vector<MetricRow> rows;
  for (const GpuConditions& of : FindGpuConditions(source.analysis)) AddConditions(of, rows);
  for (const GpuCounterUse& use : FindCounterUse(source.analysis, true, source.names)) {
    AddCounters(use, use.sums, kAll, rows);
    for (const KernelMetrics& kernel : use.kernels) {
      AddCounters(use, kernel.sums, kernel.name, rows);
    }
  }
  SetRows(table, std::move(rows), [](const MetricRow& row, Row& cells) {
    cells.assign({row.gpu == "-" ? "" : row.gpu, Format("{:.2f}", row.average),
                  Format("{:.2f}", row.most),
                  row.peak_percent < 0 ? "" : Format("{:.1f}", row.peak_percent),
                  std::to_string(row.samples), row.total, row.unit, row.metric, row.kernel});
  });
}

void FillGpuThrottle(TableSource& source, Table& table) {
  struct ThrottleRow {
    std::string gpu;
    uint64_t whole_ns;
    ThrottleTime time;
  };
  std::vector<ThrottleRow> rows;
  for (const GpuConditions& of : FindGpuConditions(source.analysis)) {
    for (const ThrottleTime& time : of.throttled) {
      rows.push_back({of.gpu.NumberText(), of.duration_ns(), time});
    }
  }
  SetRows(table, std::move(rows), [](const ThrottleRow& row, Row& cells) {
    cells.assign({Percent(std::min(row.time.ns, row.whole_ns), row.whole_ns),
                  std::to_string(row.time.ns),
                  row.time.samples == 0 ? "" : std::to_string(row.time.samples),
                  row.gpu == "-" ? "" : row.gpu, std::string(row.time.reason)});
  });
}

}  // namespace xpu
