#include <utility>

#include "report/trace/user_probes.h"
#include "report/views/tables/top_cells.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

// Of calls whose entry and return were both probed.
void AppendCalls(const ProbeTimes& row, Row& cells) {
  if (row.calls == 0) {
    cells.resize(cells.size() + 5);
    return;
  }
  const double average = static_cast<double>(row.total_ns) / static_cast<double>(row.calls);
  cells.push_back(std::to_string(row.calls));
  cells.push_back(std::to_string(row.total_ns));
  cells.push_back(Format("{:.1f}", average));
  cells.push_back(std::to_string(row.smallest_ns));
  cells.push_back(std::to_string(row.largest_ns));
}

}  // namespace

void FillProbes(TableSource& source, Table& table) {
  std::vector<ProbeTimes> rows = FindProbeTimes(source.analysis.model);
  uint64_t whole = 0;
  for (const ProbeTimes& row : rows) whole += row.hits;
  SetRows(table, std::move(rows), [whole](const ProbeTimes& row, Row& cells) {
    cells.assign({Percent(row.hits, whole), std::to_string(row.hits)});
    AppendCalls(row, cells);
    cells.push_back(row.name);
  });
}

}  // namespace xpu
