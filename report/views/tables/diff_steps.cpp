#include "report/views/tables/diff_steps.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/text.h"
#include "report/query/significance.h"
#include "report/query/statistics.h"
#include "report/views/tables/top_cells.h"
#include "report/workload/steps.h"

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

// Of each capture.
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

}  // namespace

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

}  // namespace xpu
