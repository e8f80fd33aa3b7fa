#include "report/views/tables/top_rows.h"

#include "report/analysis/sampled_events.h"
#include "report/query/call_tree_builder.h"
#include "report/query/gpu_idle.h"
#include "report/trace/user_probes.h"

namespace xpu {
namespace {

void SetTimes(Table& table, std::vector<Statistics> rows) {
  const uint64_t whole = SumOfTotals(rows);
  SetRows(table, std::move(rows), [whole](const Statistics& row, Row& cells) {
    AppendTimes(row, whole, cells);
    cells.push_back(row.name);
  });
}

void SetCategories(Table& table, std::vector<CategoryTimes> rows) {
  const uint64_t whole = WholeOf(rows);
  SetRows(table, std::move(rows), [whole](const CategoryTimes& row, Row& cells) {
    AppendTimes(row.times, whole, cells);
    cells.emplace_back(row.category);
    cells.push_back(row.times.name);
  });
}

// Appends the times of calls whose entry and return were both probed.
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

const std::vector<GpuBusy>& TableSource::busy() {
  if (!busy_) busy_ = FindGpuBusy(analysis);
  return *busy_;
}

CallPaths& TableSource::paths() {
  if (!paths_) {
    paths_ = std::make_unique<CallPaths>(
        analysis, PathOptions{.graph_stacks = options.tree.paths.graph_stacks});
    paths_->NameAhead({.launches = true});
  }
  return *paths_;
}

std::string Megabytes(double bytes) { return Format("{:.3f}", bytes / 1e6); }

void FillKernels(TableSource& source, Table& table) {
  SetTimes(table, KernelTimes(source.analysis, source.names));
}

void FillGraphs(TableSource& source, Table& table) {
  SetTimes(table, GraphTimes(source.analysis, source.names));
}

void FillCopyTimes(TableSource& source, Table& table) {
  SetTimes(table, CopyTimes(source.analysis));
}

void FillApis(TableSource& source, Table& table) { SetTimes(table, ApiTimes(source.analysis)); }

void FillOverheads(TableSource& source, Table& table) {
  SetTimes(table, OverheadTimes(source.analysis));
}

void FillJit(TableSource& source, Table& table) {
  std::vector<JitTimes> rows = JitOperationTimes(source.analysis);
  const uint64_t whole = WholeOf(rows);
  SetRows(table, std::move(rows), [whole](const JitTimes& row, Row& cells) {
    AppendTimes(row.times, whole, cells);
    cells.push_back(Megabytes(static_cast<double>(row.cache_bytes)));
    cells.emplace_back(row.operation);
    cells.emplace_back(row.entry);
  });
}

void FillIdle(TableSource& source, Table& table) {
  SetTimes(table, IdleTimes(source.analysis, source.busy()));
}

void FillWaits(TableSource& source, Table& table) {
  SetTimes(table, WaitTimes(source.analysis, source.names));
}

void FillKernelShapes(TableSource& source, Table& table) {
  std::vector<KernelShape> rows = KernelShapeTimes(source.analysis, source.names);
  const uint64_t whole = WholeOf(rows);
  SetRows(table, std::move(rows), [whole](const KernelShape& row, Row& cells) {
    AppendTimes(row.times, whole, cells);
    cells.push_back(row.grid);
    cells.push_back(row.block);
    cells.push_back(row.times.name);
  });
}

void FillCopySizes(TableSource& source, Table& table) {
  SetRows(table, CopySizes(source.analysis), [](const Statistics& row, Row& cells) {
    cells.assign({Megabytes(static_cast<double>(row.total)), std::to_string(row.count),
                  Megabytes(row.average), Megabytes(row.median),
                  Megabytes(static_cast<double>(row.smallest)),
                  Megabytes(static_cast<double>(row.largest)), Megabytes(row.deviation), row.name});
  });
}

void FillGpuWork(TableSource& source, Table& table) {
  SetCategories(table, GpuWorkTimes(source.analysis, source.names));
}

void FillApisAndGpuWork(TableSource& source, Table& table) {
  SetCategories(table, ApiAndGpuWorkTimes(source.analysis, source.names));
}

void FillFunctions(TableSource& source, Table& table) {
  const FrameTable& frames = source.analysis.frames;
  const TreeOptions tree_options{.mode = TreeMode::kCpu,
                                 .kernel_names = source.options.TableKernelNames()};
  std::vector<FunctionTime> rows =
      FunctionTimes(BuildCallTree(source.analysis, tree_options), frames);
  if (!CountsTime(source.analysis, tree_options))
    table.unit = SampleUnit(source.analysis.model, source.analysis.shown);
  uint64_t whole = 0;
  for (const FunctionTime& row : rows) whole = AddSaturated(whole, row.self_ns);
  SetRows(table, std::move(rows), [whole, &frames](const FunctionTime& row, Row& cells) {
    cells.assign({Percent(row.self_ns, whole), std::to_string(row.self_ns),
                  Percent(row.total_ns, whole), std::to_string(row.total_ns),
                  std::to_string(row.self_count), frames[row.frame].module,
                  frames[row.frame].Label()});
  });
}

void FillProbes(TableSource& source, Table& table) {
  std::vector<ProbeTimes> rows = FindProbeTimes(source.analysis.model, source.analysis.shown);
  uint64_t whole = 0;
  for (const ProbeTimes& row : rows) whole += row.hits;
  SetRows(table, std::move(rows), [whole](const ProbeTimes& row, Row& cells) {
    cells.assign({Percent(row.hits, whole), std::to_string(row.hits)});
    AppendCalls(row, cells);
    cells.push_back(row.name);
  });
}

}  // namespace xpu
