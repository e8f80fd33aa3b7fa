// op_sum, module_sum and kernel_library_sum.
#include <string>
#include <utility>
#include <vector>

#include "format/base/saturated.h"
#include "report/views/tables/top_cells.h"
#include "report/views/tables/top_rows.h"
#include "report/workload/modules.h"
#include "report/workload/operators.h"

namespace xpu {

void FillOperators(TableSource& source, Table& table) {
  std::vector<OperatorCost> rows =
      OperatorCosts(source.analysis, {.graph_stacks = source.options.graph_stacks});
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
      ModuleCosts(source.analysis, {.graph_stacks = source.options.graph_stacks});
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
