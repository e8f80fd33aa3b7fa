// --top; with --slow-steps slow_step_sum by call path, or any other table with totals.
#include <algorithm>
#include <utility>

#include "format/base/text.h"
#include "report/base/text.h"
#include "report/views/tables/table.h"
#include "report/views/tables/top_rows.h"
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
    // Some of several tables may not have the column.
    const Result<size_t> column = FindColumn(table.columns, source.options.sort);
    if (column.ok()) SortBy(table, column.value());
  }
  LimitRows(table, source.options.rows);
  NameUnit(table);  // last: --sort names the columns as they are called for time
  return table;
}

struct SlowPath {
  std::string_view kind;
  std::string path;
  uint64_t median_ns = 0;
  uint64_t slow_ns = 0;

  int64_t delta() const { return static_cast<int64_t>(slow_ns - median_ns); }
};

Table SlowPathTable(const StepComparison& compared, const FrameTable& frames) {
  std::vector<SlowPath> rows;
  for (uint32_t i = 0; i < compared.tree.nodes().size(); ++i) {
    const CallTree::Node& node = compared.tree.nodes()[i];
    if (node.self_ns == 0 && compared.median_ns[i] == 0) continue;
    rows.push_back({NameOf(StepGrowth::KindOf(frames[node.frame])),
                    FoldedText(frames, compared.tree.Path(PathId{i + 1})), compared.median_ns[i],
                    node.self_ns});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const SlowPath& a, const SlowPath& b) { return a.delta() > b.delta(); });
  Table table{"slow_step_sum",
              "What Slow Steps Do More Of, per Step",
              {{"Delta (ns)"},
               {"Median (ns)"},
               {"Slow (ns)"},
               {"Ratio"},
               {.name = "Kind", .is_text = true},
               {.name = "Path", .is_text = true, .is_path = true}},
              0};
  SetRows(table, std::move(rows), [](const SlowPath& row, Row& cells) {
    const std::string ratio = row.median_ns == 0
                                  ? ""
                                  : Format("{:.2f}", static_cast<double>(row.slow_ns) /
                                                         static_cast<double>(row.median_ns));
    cells.assign({std::to_string(row.delta()), std::to_string(row.median_ns),
                  std::to_string(row.slow_ns), ratio, std::string(row.kind), row.path});
  });
  return table;
}

}  // namespace

void WriteTop(Analysis& analysis, const ViewOptions& options, Output& output, std::string* notes) {
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
              WriteTop(input.analysis, input.options, input.output, &input.notes);
            } else {
              WriteSlowStepsTable(*input.slow_steps, input.analysis, *input.median_steps,
                                  input.options, input.output, input.notes);
            }
          },
  };
}

void WriteSlowStepsTable(const SlowSteps& steps, Analysis& slow, Analysis& median,
                         const ViewOptions& options, Output& output, std::string& notes) {
  const TreeOptions tree_options{.kernel_names = options.PathKernelNames(),
                                 .paths = {.graph_stacks = options.tree.paths.graph_stacks}};
  const StepComparison compared = CompareSteps(steps, slow, median, tree_options);
  const std::string text = SlowStepsText(steps, compared, slow.frames);
  // Readers of CSV and JSON expect nothing before the tables.
  if (options.format == TableFormat::kTable) {
    output.Write(ShownText::Lines(text + "\n"));
  } else {
    notes += text;
  }
  TableWriter writer(options.format, output);
  if (options.table.empty()) {
    Table table = SlowPathTable(compared, slow.frames);
    LimitRows(table, options.rows);
    writer.Write(table, false);
  }
  TableSource source_median(median, options);
  TableSource source_slow(slow, options);
  for (const TableKind* kind : WantedTables(options)) {
    if (options.table.empty()) break;
    const DiffSide before{
        "Median", {{MakeTable(*kind, source_median), static_cast<double>(steps.median.count)}}};
    const DiffSide after{"Slow",
                         {{MakeTable(*kind, source_slow), static_cast<double>(steps.slow.count)}}};
    Table table = DiffTable(*kind, before, after);
    table.title += ", per Step";
    LimitRows(table, options.rows);
    writer.Write(table, false);
  }
  writer.Close();
}

}  // namespace xpu
