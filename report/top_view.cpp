#include "report/table_writer.h"
#include "report/top_tables.h"
#include "report/views.h"

namespace xpu {
namespace {

Table Prepared(const TableKind& kind, TableSource& source) {
  Table table = MakeTable(kind, source);
  if (!source.options.sort.empty()) {
    // Of several tables some may not have the column.
    const Result<size_t> column = FindColumn(table.columns, source.options.sort);
    if (column.ok()) SortBy(table, column.value());
  }
  LimitRows(table, source.options.rows);
  return table;
}

}  // namespace

void WriteTop(Analysis& analysis, const TopOptions& options, Output& output) {
  TableSource source(analysis, options);
  TableWriter writer(options.format, output);
  const std::vector<const TableKind*> kinds = WantedTables(options);
  for (const TableKind* kind : kinds) writer.Write(Prepared(*kind, source), kinds.size() > 1);
  writer.Close();
}

}  // namespace xpu
