// step_sum, step_trace, op_sum, module_sum and kernel_library_sum.

#include "report/model/recorded_time.h"
#include "report/views/tables/top_rows.h"
#include "report/workload/operators.h"
#include "report/workload/step_selection.h"
#include "report/workload/steps.h"

namespace xpu {
namespace {

// Adds up a field over the steps after the warm-up.
uint64_t Sum(const std::vector<StepCost>& costs, size_t warm_up, uint64_t StepCost::*field) {
  uint64_t sum = 0;
  for (size_t i = warm_up; i < costs.size(); ++i) sum = AddSaturated(sum, costs[i].*field);
  return sum;
}

std::vector<StepSeries> StepsOf(TableSource& source) {
  return ShownSteps(FindSteps(source.analysis, source.options.steps.definition),
                    source.options.steps.range, source.analysis.shown);
}

struct StepRow {
  StepSeries series;
  std::vector<StepCost> costs;
  std::string how;
};

void MakeSummary(const StepRow& row, Row& cells) {
  const StepSeries& series = row.series;
  std::vector<uint64_t> durations;
  for (size_t i = series.warm_up; i < row.costs.size(); ++i) {
    durations.push_back(row.costs[i].duration_ns);
  }
  std::sort(durations.begin(), durations.end());
  const auto count = static_cast<double>(durations.size());
  const auto average = [&](uint64_t StepCost::*field) {
    return static_cast<double>(Sum(row.costs, series.warm_up, field)) / count;
  };
  const uint64_t busy_ns = Sum(row.costs, series.warm_up, &StepCost::busy_ns);
  const uint64_t idle_ns = Sum(row.costs, series.warm_up, &StepCost::idle_ns);
  cells.assign(
      {std::to_string(series.steps.size()), std::to_string(series.warm_up),
       std::to_string(Sum(row.costs, series.warm_up, &StepCost::duration_ns)),
       Format("{:.1f}", average(&StepCost::duration_ns)), std::to_string(Percentile(durations, 50)),
       std::to_string(Percentile(durations, 90)), std::to_string(Percentile(durations, 99)),
       std::to_string(durations.front()), std::to_string(durations.back()),
       Percent(busy_ns, AddSaturated(busy_ns, idle_ns)),
       Format("{:.1f}", average(&StepCost::busy_ns)), Format("{:.1f}", average(&StepCost::idle_ns)),
       Format("{:.1f}", average(&StepCost::kernels)), Format("{:.1f}", average(&StepCost::graphs)),
       Format("{:.1f}", average(&StepCost::copies)), Megabytes(average(&StepCost::bytes)),
       std::to_string(series.thread.pid), std::to_string(series.thread.tid), row.how});
}

}  // namespace

void FillSteps(TableSource& source, Table& table) {
  std::vector<StepRow> rows;
  for (StepSeries& series : StepsOf(source)) {
    std::vector<StepCost> costs = StepCosts(source.analysis, series);
    std::string how = HowFound(series, source.options.steps.definition);
    rows.push_back({std::move(series), std::move(costs), std::move(how)});
  }
  SetRows(table, std::move(rows), MakeSummary);
}

void FillStepTrace(TableSource& source, Table& table) {
  struct One {
    size_t index;
    Step step;
    StepCost cost;
    Owner thread;
    bool is_warm_up;
  };
  std::vector<One> rows;
  for (const StepSeries& series : StepsOf(source)) {
    const std::vector<StepCost> costs = StepCosts(source.analysis, series);
    for (size_t i = 0; i < series.steps.size(); ++i) {
      rows.push_back(
          {series.first + i, series.steps[i], costs[i], series.thread, i < series.warm_up});
    }
  }
  const uint64_t start_ns = StartOf(source.analysis.model);
  SetRows(table, std::move(rows), [start_ns](const One& row, Row& cells) {
    const std::string_view launches = row.is_warm_up        ? "warm-up"
                                      : row.step.is_regular ? "as most"
                                                            : "others";
    cells.assign({std::to_string(row.index),
                  std::to_string(row.step.start_ns - std::min(row.step.start_ns, start_ns)),
                  std::to_string(row.cost.duration_ns), std::to_string(row.cost.busy_ns),
                  std::to_string(row.cost.idle_ns), std::to_string(row.cost.kernels),
                  std::to_string(row.cost.graphs), std::to_string(row.cost.copies),
                  Megabytes(static_cast<double>(row.cost.bytes)), std::to_string(row.thread.pid),
                  std::to_string(row.thread.tid), std::string(launches)});
  });
}

void FillOperators(TableSource& source, Table& table) {
  std::vector<OperatorCost> rows = OperatorCosts(source.analysis, source.paths(), source.busy());
  // A program without operators has no use for a table of one row.
  const bool has_any = std::any_of(rows.begin(), rows.end(),
                                   [](const OperatorCost& row) { return row.name != kNoOperator; });
  if (!has_any) rows.clear();
  uint64_t whole = 0;
  for (const OperatorCost& row : rows) whole = AddSaturated(whole, row.self_ns);
  SetRows(table, std::move(rows), [whole](const OperatorCost& row, Row& cells) {
    cells.assign({Percent(row.self_ns, whole), std::to_string(row.self_ns),
                  Percent(row.total_ns, whole), std::to_string(row.total_ns),
                  std::to_string(row.work), std::to_string(row.launches),
                  std::to_string(row.launch_ns), std::to_string(row.idle_ns),
                  row.is_backward ? "backward" : "forward", row.libraries, row.name});
  });
}

void FillModules(TableSource& source, Table& table) {
  std::vector<ModuleCost> rows =
      ModuleCosts(source.analysis, {.graph_stacks = source.options.tree.paths.graph_stacks});
  uint64_t whole = 0;
  for (const ModuleCost& row : rows) whole = AddSaturated(whole, row.self_ns);
  SetRows(table, std::move(rows), [whole](const ModuleCost& row, Row& cells) {
    cells.assign({Percent(row.total_ns, whole), std::to_string(row.total_ns),
                  Percent(row.self_ns, whole), std::to_string(row.self_ns),
                  std::to_string(row.work), std::to_string(row.launches),
                  std::to_string(row.launch_ns), row.calls == 0 ? "" : std::to_string(row.calls),
                  row.called_at, row.name, row.path});
  });
}

void FillLibraries(TableSource& source, Table& table) {
  std::vector<Statistics> rows = KernelLibraryTimes(source.analysis);
  const uint64_t whole = SumOfTotals(rows);
  SetRows(table, std::move(rows), [whole](const Statistics& row, Row& cells) {
    AppendTimes(row, whole, cells);
    cells.push_back(row.name);
  });
}

}  // namespace xpu
