// --diff: the tables of two captures, or of several on each side, as one.
#include <algorithm>
#include <map>
#include <utility>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/base/text.h"
#include "report/model/recorded_time.h"
#include "report/query/gpu_busy.h"
#include "report/query/gpu_metrics.h"
#include "report/query/statistics.h"
#include "report/views/tables/table.h"
#include "report/views/tables/top_rows.h"
#include "report/views/tables/top_tables.h"
#include "report/views/view.h"

namespace xpu {
namespace {

struct Quantity {
  std::string_view name;
  uint64_t StepCost::*field;
};
constexpr Quantity kQuantities[] = {
    {"Duration (ns)", &StepCost::duration_ns}, {"GPU Busy (ns)", &StepCost::busy_ns},
    {"GPU Idle (ns)", &StepCost::idle_ns},     {"GPU Time (ns)", &StepCost::gpu_ns},
    {"Kernels", &StepCost::kernels},           {"Graphs", &StepCost::graphs},
    {"Memory Ops", &StepCost::copies},         {"Bytes", &StepCost::bytes}};

using Costs = std::vector<StepCost>;

// The costs of all steps of each capture.
std::vector<Costs> CostsOf(const std::vector<DiffCapture>& captures) {
  std::vector<Costs> all;
  for (const DiffCapture& capture : captures) {
    Costs& costs = all.emplace_back();
    for (const StepSeries& series : capture.steps) {
      const Costs of = StepCosts(*capture.analysis, series);
      costs.insert(costs.end(), of.begin(), of.end());
    }
  }
  return all;
}

struct Values {
  std::vector<uint64_t> all;    // ascending
  std::vector<double> medians;  // of each capture
  double median() const {
    double sum = 0;
    for (const double of : medians) sum += of;
    return sum / static_cast<double>(medians.size());
  }
};

Values ValuesOf(const std::vector<Costs>& captures, uint64_t StepCost::*field) {
  Values values;
  for (const Costs& costs : captures) {
    std::vector<uint64_t> own;
    for (const StepCost& cost : costs) own.push_back(cost.*field);
    std::sort(own.begin(), own.end());
    values.medians.push_back(static_cast<double>(Percentile(own, 50)));
    values.all.insert(values.all.end(), own.begin(), own.end());
  }
  std::sort(values.all.begin(), values.all.end());
  return values;
}

std::string_view ChangeOf(const Values& before, const Values& after) {
  const auto numbers = [](const Values& values) {
    return std::vector<double>(values.all.begin(), values.all.end());
  };
  const bool has_runs = before.medians.size() > 1 && after.medians.size() > 1;
  const bool differs = has_runs ? DifferByMeans(before.medians, after.medians)
                                : DifferByRanks(numbers(before), numbers(after));
  if (differs) return "changed";
  return before.median() == after.median() ? "same" : "noise";
}

// --diff --by step: a row for each quantity of a step: duration, busy and idle time, kernels,
// bytes. Whether it differs is decided by all steps or, with several captures on both sides, by one
// median of each.
Table DiffSteps(const DiffCaptures& captures) {
  struct StepChange {
    std::string_view name;
    Values before;
    Values after;
  };
  const std::vector<Costs> before = CostsOf(captures.before);
  const std::vector<Costs> after = CostsOf(captures.after);
  std::vector<StepChange> rows;
  for (const Quantity& quantity : kQuantities) {
    StepChange row{quantity.name, ValuesOf(before, quantity.field),
                   ValuesOf(after, quantity.field)};
    const bool is_none = row.before.all.back() == 0 && row.after.all.back() == 0;
    if (!is_none) rows.push_back(std::move(row));
  }
  Table table{"step_sum",
              "Change of a Step",
              {{.name = "Step", .is_text = true},
               {"Delta Med"},
               {"Before Med"},
               {"After Med"},
               {"Ratio"},
               {"Before P90"},
               {"After P90"},
               {"Before P99"},
               {"After P99"},
               {"Steps Before"},
               {"Steps After"},
               {.name = "Change", .is_text = true}},
              0};
  SetRows(table, std::move(rows), [](const StepChange& row, Row& cells) {
    const double was = row.before.median();
    const double is = row.after.median();
    const auto at = [](const Values& values, size_t percent) {
      return std::to_string(Percentile(values.all, percent));
    };
    cells.assign({std::string(row.name), Format("{:.0f}", is - was), Format("{:.0f}", was),
                  Format("{:.0f}", is), was == 0 ? "" : Format("{:.2f}", is / was),
                  at(row.before, 90), at(row.after, 90), at(row.before, 99), at(row.after, 99),
                  std::to_string(row.before.all.size()), std::to_string(row.after.all.size()),
                  std::string(ChangeOf(row.before, row.after))});
  });
  return table;
}

struct Totals {
  uint64_t run_ns = 0;
  bool has_end = false;  // otherwise the program ran for at least run_ns
  uint64_t gpu_ns = 0;   // all work added up
  uint64_t busy_ns = 0;  // the union over streams, all GPUs
};

Totals TotalsOf(const Analysis& analysis) {
  Totals totals{.run_ns = RunTimeNs(analysis.model),
                .has_end = !analysis.model.events.recording_end.empty()};
  if (!totals.has_end) totals.run_ns = analysis.recorded_until_ns;
  for (const GpuWork& work : analysis.Work()) {
    if (work.kind == WorkKind::kSynchronization) continue;
    totals.gpu_ns = AddSaturated(totals.gpu_ns, work.duration_ns);
  }
  for (const GpuBusy& gpu : FindGpuBusy(analysis)) {
    totals.busy_ns = AddSaturated(totals.busy_ns, gpu.busy_ns);
  }
  return totals;
}

std::string Ratio(uint64_t before, uint64_t after) {
  if (before == 0) return "";
  return Format(" ({:.2f}x)", static_cast<double>(after) / static_cast<double>(before));
}

std::string RunText(const Totals& totals) {
  if (totals.has_end) return "ran " + HumanDuration(totals.run_ns);
  return totals.run_ns == 0
             ? "end not recorded"
             : Format("end not recorded, ran at least {}", HumanDuration(totals.run_ns));
}

// " (0.98x)" if the same GPU is among those whose clocks are given, by number.
std::string ClockRatio(const GpuConditions& gpu, const std::map<std::string, double>& clocks) {
  const auto other = clocks.find(gpu.gpu.NumberText());
  return other == clocks.end() ? "" : Format(" ({:.2f}x)", gpu.sm_clock / other->second);
}

// Adds conditions that make kernels slower from one day to the next, a line for each GPU.
void AddConditions(const std::vector<GpuConditions>& gpus, const std::vector<GpuConditions>& first,
                   std::string& text) {
  std::map<std::string, double> clocks;
  for (const GpuConditions& gpu : first) {
    if (gpu.sm_clock > 0) clocks.try_emplace(gpu.gpu.NumberText(), gpu.sm_clock);
  }
  for (const GpuConditions& gpu : gpus) {
    if (gpu.sm_clock <= 0) continue;
    AppendFormat(text, "        GPU {}: SM clock {:.0f} MHz{}, power {:.0f} W",
                 gpu.gpu.NumberText(), gpu.sm_clock, ClockRatio(gpu, clocks), gpu.power);
    const auto add = [&](std::string_view what, bool ThrottleTime::*kind) {
      const double share = ThrottledShare(gpu, kind);
      if (share > 0) AppendFormat(text, ", {} {:.0f} % of the time", what, 100 * share);
    };
    add("power-capped", &ThrottleTime::is_power);
    add("too hot", &ThrottleTime::is_thermal);
    text += '\n';
  }
}

// Ratios where one capture is compared with one other.
std::string TotalsText(const DiffCaptures& captures) {
  const bool is_one = captures.before.size() == 1 && captures.after.size() == 1;
  const Totals first = TotalsOf(*captures.before.front().analysis);
  std::string text;
  const auto add = [&](std::string_view label, const DiffCapture& capture, bool has_ratio) {
    const Totals of = TotalsOf(*capture.analysis);
    const auto ratio = [&](uint64_t Totals::*field) {
      return has_ratio ? Ratio(first.*field, of.*field) : std::string();
    };
    const std::string run_ratio = first.has_end && of.has_end ? ratio(&Totals::run_ns) : "";
    AppendFormat(text, "{:<7} {}: {}{}, GPU work {}{}, GPU busy {}{}\n", label,
                 ToWidth(capture.analysis->model.path, 80), RunText(of), run_ratio,
                 HumanDuration(of.gpu_ns), ratio(&Totals::gpu_ns), HumanDuration(of.busy_ns),
                 ratio(&Totals::busy_ns));
  };
  std::vector<GpuConditions> gpus_before;
  for (const DiffCapture& capture : captures.before) {
    add("before", capture, false);
    if (!is_one) continue;
    gpus_before = FindGpuConditions(*capture.analysis);
    AddConditions(gpus_before, {}, text);
  }
  for (const DiffCapture& capture : captures.after) {
    add("after", capture, is_one);
    if (is_one) AddConditions(FindGpuConditions(*capture.analysis), gpus_before, text);
  }
  return text;
}

// So that short names of kernels are the same in all captures.
void ShareKernelNames(const DiffCaptures& captures) {
  std::vector<Analysis*> all;
  for (const DiffCapture& capture : captures.before) all.push_back(capture.analysis);
  for (const DiffCapture& capture : captures.after) all.push_back(capture.analysis);
  for (Analysis* of : all) {
    for (const Analysis* other : all) {
      if (other == of) continue;
      const std::vector<std::string> names = KernelNamesOf(other->model);
      of->other_kernels.insert(of->other_kernels.end(), names.begin(), names.end());
    }
  }
}

DiffSide SideOf(std::string_view name, const TableKind& kind,
                std::vector<std::pair<TableSource, double>>& sources) {
  DiffSide side{name, {}};
  for (auto& [source, of_how_many] : sources) {
    side.runs.push_back({MakeTable(kind, source), of_how_many});
  }
  return side;
}

std::vector<std::pair<TableSource, double>> SourcesOf(const std::vector<DiffCapture>& captures,
                                                      const ViewOptions& options) {
  std::vector<std::pair<TableSource, double>> sources;
  for (const DiffCapture& capture : captures) {
    size_t steps = 0;
    for (const StepSeries& series : capture.steps) steps += series.steps.size();
    sources.emplace_back(TableSource(*capture.analysis, options),
                         std::max<double>(1, static_cast<double>(steps)));
  }
  return sources;
}

}  // namespace

void WriteDiff(const DiffCaptures& captures, const ViewOptions& options, Output& output,
               std::string& notes) {
  const std::string totals = TotalsText(captures);
  // Readers of CSV and JSON expect nothing before the tables.
  if (options.format == TableFormat::kTable) {
    output.Write(ShownText::Lines(totals + "\n"));
  } else {
    notes += totals;
  }
  ShareKernelNames(captures);
  TableWriter writer(options.format, output);
  if (options.per_step && options.table.empty()) {
    writer.Write(DiffSteps(captures), false);
    return writer.Close();
  }
  std::vector<std::pair<TableSource, double>> before = SourcesOf(captures.before, options);
  std::vector<std::pair<TableSource, double>> after = SourcesOf(captures.after, options);
  std::vector<const TableKind*> kinds = WantedTables(options);
  std::erase_if(kinds, [](const TableKind* kind) { return kind->total.empty(); });
  for (const TableKind* kind : kinds) {
    Table table = DiffTable(*kind, SideOf("Before", *kind, before), SideOf("After", *kind, after));
    if (options.per_step) table.title += ", per Step";
    LimitRows(table, options.rows);
    writer.Write(table, kinds.size() > 1);
  }
  writer.Close();
}

View DiffView() {
  return {
      .option = "--diff",
      .help = "tables: what became slower since capture BEFORE",
      .other_capture = "BEFORE",
      .shows_tables = true,
      .write =
          [](const ViewInput& input) {
            WriteDiff(input.compared, input.options, input.output, input.notes);
          },
  };
}

}  // namespace xpu
