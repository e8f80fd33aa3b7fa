// gpu_metric_sum: clocks, power and hardware counters of each GPU, and counters by kernel.
// gpu_throttle_sum: why clocks were low, and for how long.
// Tables of samples of GPU code: by line, by function, by what warps wait for.
#include <map>
#include <tuple>

#include "report/query/code_samples.h"
#include "report/query/gpu_metrics.h"
#include "report/views/tables/top_rows.h"
#include "symbolize/demangle.h"

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

// The values of a row of these tables.
struct CodeRow {
  std::string function;  // of a line or function
  std::string kernel;
  std::string line;
  CodeCount sum;
  uint64_t total_ns = 0;  // with what is inlined
  std::map<std::string, uint64_t> stalls;

  void Add(const std::string& stall, const CodeCount& count) {
    sum.samples = AddSaturated(sum.samples, count.samples);
    sum.not_issued = AddSaturated(sum.not_issued, count.not_issued);
    sum.ns = AddSaturated(sum.ns, count.ns);
    stalls[stall] = AddSaturated(stalls[stall], count.samples);
  }
  // The reason of most samples.
  std::pair<std::string, uint64_t> Top() const {
    std::pair<std::string, uint64_t> top;
    for (const auto& [stall, samples] : stalls) {
      if (samples > top.second) top = {stall, samples};
    }
    return top;
  }
};

// Most time first, of equal ones most samples.
template <typename Key>
std::vector<CodeRow> SortedRows(std::map<Key, CodeRow>& by_key) {
  std::vector<CodeRow> rows;
  for (auto& [key, row] : by_key) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [](const CodeRow& a, const CodeRow& b) {
    return std::pair(a.sum.ns, a.sum.samples) > std::pair(b.sum.ns, b.sum.samples);
  });
  return rows;
}

template <typename Member>
uint64_t WholeOf(const std::vector<CodeRow>& rows, Member member) {
  uint64_t whole = 0;
  for (const CodeRow& row : rows) whole = AddSaturated(whole, row.sum.*member);
  return whole;
}

std::string LongPlaceOf(const SourceFrame& frame) {
  if (frame.file.empty()) return {};
  return frame.line == 0 ? std::string(frame.file) : Format("{}:{}", frame.file, frame.line);
}

// The kernel's own name where nothing is inlined or called.
std::string InnermostFunction(const SampledFunction& function, const SampledInstruction& at,
                              const std::string& kernel) {
  if (!at.lines.empty() && !at.lines.front().function.empty()) {
    return Demangle(at.lines.front().function);
  }
  return function.callee.empty() ? kernel : Demangle(function.callee);
}

struct SampledPlace {
  const SampledFunction& of;
  const SampledInstruction& at;
  const std::string& kernel;
  std::string function;  // the innermost one
};

// Calls visit(place, stall, count) for all that was sampled.
template <typename Visit>
void ForEachCount(TableSource& source, const CodeSamples& samples, Visit visit) {
  for (const SampledFunction& function : samples.functions()) {
    const std::string kernel = source.names.KernelName(function.kernel);
    for (const SampledInstruction& at : function.instructions) {
      const SampledPlace place{function, at, kernel, InnermostFunction(function, at, kernel)};
      for (const auto& [stall, count] : at.stalls) visit(place, stall, count);
    }
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

void FillGpuLines(TableSource& source, Table& table) {
  const CodeSamples samples(source.analysis);
  std::map<std::tuple<std::string, std::string, std::string>, CodeRow> by_line;
  ForEachCount(source, samples,
               [&](const SampledPlace& place, const std::string& stall, const CodeCount& count) {
                 const auto& lines = place.at.lines;
                 const std::string line = lines.empty() ? "" : LongPlaceOf(lines.front());
                 CodeRow& row = by_line[{line, place.function, place.kernel}];
                 row.line = line;
                 row.function = place.function;
                 row.kernel = place.kernel;
                 row.Add(stall, count);
               });
  std::vector<CodeRow> rows = SortedRows(by_line);
  const uint64_t whole_ns = WholeOf(rows, &CodeCount::ns);
  SetRows(table, std::move(rows), [whole_ns](const CodeRow& row, Row& cells) {
    const auto [stall, stalled] = row.Top();
    cells.assign({Percent(row.sum.ns, whole_ns), std::to_string(row.sum.ns),
                  std::to_string(row.sum.samples), Percent(stalled, row.sum.samples), stall,
                  row.line, row.function, row.kernel});
  });
}

void FillGpuFunctions(TableSource& source, Table& table) {
  const CodeSamples samples(source.analysis);
  std::map<std::pair<std::string, std::string>, CodeRow> by_function;
  ForEachCount(source, samples,
               [&](const SampledPlace& place, const std::string& stall, const CodeCount& count) {
                 const auto row_of = [&](const std::string& function) -> CodeRow& {
                   CodeRow& row = by_function[{function, place.kernel}];
                   row.function = function;
                   row.kernel = place.kernel;
                   return row;
                 };
                 row_of(place.function).Add(stall, count);
                 // One that is inlined into itself counts once.
                 std::vector<std::string> around = {place.kernel};
                 if (!place.of.callee.empty()) around.push_back(Demangle(place.of.callee));
                 for (const SourceFrame& frame : place.at.lines) {
                   if (!frame.function.empty()) around.push_back(Demangle(frame.function));
                 }
                 std::sort(around.begin(), around.end());
                 around.erase(std::unique(around.begin(), around.end()), around.end());
                 for (const std::string& function : around) {
                   CodeRow& row = row_of(function);
                   row.total_ns = AddSaturated(row.total_ns, count.ns);
                 }
               });
  std::vector<CodeRow> rows = SortedRows(by_function);
  const uint64_t whole_ns = WholeOf(rows, &CodeCount::ns);
  SetRows(table, std::move(rows), [whole_ns](const CodeRow& row, Row& cells) {
    const auto [stall, stalled] = row.Top();
    cells.assign({Percent(row.sum.ns, whole_ns), std::to_string(row.sum.ns),
                  Percent(row.total_ns, whole_ns), std::to_string(row.total_ns),
                  std::to_string(row.sum.samples), Percent(stalled, row.sum.samples), stall,
                  row.function, row.kernel});
  });
}

void FillGpuStalls(TableSource& source, Table& table) {
  const CodeSamples samples(source.analysis, false);
  std::map<std::string, CodeRow> by_stall;
  ForEachCount(
      source, samples,
      [&](const SampledPlace& /*place*/, const std::string& stall, const CodeCount& count) {
        CodeRow& row = by_stall[stall];
        row.function = stall;
        row.Add(stall, count);
      });
  std::vector<CodeRow> rows = SortedRows(by_stall);
  const uint64_t whole_ns = WholeOf(rows, &CodeCount::ns);
  SetRows(table, std::move(rows), [whole_ns](const CodeRow& row, Row& cells) {
    cells.assign({Percent(row.sum.ns, whole_ns), std::to_string(row.sum.ns),
                  std::to_string(row.sum.samples), Percent(row.sum.not_issued, row.sum.samples),
                  row.function, std::string(AdviceOf(row.function).meaning)});
  });
}

}  // namespace xpu
