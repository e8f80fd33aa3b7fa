#include "report/views/tables/table.h"
#include "report/views/tables/top_tables.h"
#include "report/views/view.h"

namespace xpu {
namespace {

void NameUnit(Table& table) {
  if (table.unit.empty()) return;
  for (Column& column : table.columns) {
    const size_t time = column.name.find("Time (ns)");
    if (time == std::string::npos || column.name.starts_with("GPU")) continue;
    column.name.replace(time, std::string::npos, "(" + table.unit + ")");
  }
}

Table Prepared(const TableKind& kind, TableSource& source) {
  const bool is_read = source.options.format == TableFormat::kTable && source.options.sort.empty();
  if (is_read && kind.fill_for_reading != nullptr) {
    Table table{std::string(kind.name), std::string(kind.title), kind.columns};
    kind.fill_for_reading(source, table);
    return table;
  }
  Table table = MakeTable(kind, source);
  if (!source.options.sort.empty()) {
    // Of several tables some may not have the column.
    const Result<size_t> column = FindColumn(table.columns, source.options.sort);
    if (column.ok()) SortBy(table, column.value());
  }
  LimitRows(table, source.options.rows);
  NameUnit(table);  // last: --sort names the columns as they are called for time
  return table;
}

}  // namespace

void WriteTop(Analysis& analysis, const TopOptions& options, Output& output, std::string* notes) {
  TableSource source(analysis, options);
  TableWriter writer(options.format, output);
  const std::vector<const TableKind*> kinds = WantedTables(options);
  for (const TableKind* kind : kinds) writer.Write(Prepared(*kind, source), kinds.size() > 1);
  writer.Close();
  if (notes != nullptr) *notes += source.notes;
}

View TopView() {
  return {
      .option = "--top",
      .help = "tables: kernels, memory operations, API calls, paths",
      .takes_sample = true,
      .compares_steps = true,
      .shows_tables = true,
      .write =
          [](const ViewInput& input) {
            if (input.slow_steps == nullptr) {
              WriteTop(input.analysis, input.options.top, input.output, &input.notes);
            } else {
              WriteSlowStepsTable(*input.slow_steps, input.analysis, *input.median_steps,
                                  input.options.top, input.output, input.notes);
            }
          },
  };
}

}  // namespace xpu
