#include "report/table.h"
#include "report/top_tables.h"
#include "report/views.h"

namespace xpu {

void WriteTop(Analysis& analysis, const TopOptions& options, Output& output) {
  const std::vector<Table> tables = TopTables(analysis, options);
  if (options.format == TableFormat::kJson) return WriteAsJson(tables, output);
  for (const Table& table : tables) {
    if (options.format == TableFormat::kTable) {
      WriteAsText(table, output);
      continue;
    }
    if (&table != &tables.front()) output.Write("\n");
    if (tables.size() > 1) output.Write("# " + table.name + "\n");
    WriteAsCsv(table, output);
  }
}

}  // namespace xpu
