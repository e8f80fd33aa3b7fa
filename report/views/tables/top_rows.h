// Cells and rows of the tables of --top, and what makes the rows of each: TableKind::fill.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/gpu_names.h"
#include "report/base/text.h"
#include "report/query/gpu_busy.h"
#include "report/query/statistics.h"
#include "report/views/tables/table.h"
#include "report/views/view.h"

namespace xpu {

inline std::string Percent(uint64_t part, uint64_t whole) {
  return Format("{:.1f}", PercentOf(part, whole));
}

// The share of the whole, then the columns of nsys: total, count, average, ...
inline void AppendTimes(const Statistics& times, uint64_t whole, Row& cells) {
  cells.assign({Percent(times.total, whole), std::to_string(times.total),
                std::to_string(times.count), Format("{:.1f}", times.average),
                Format("{:.1f}", times.median), std::to_string(times.smallest),
                std::to_string(times.largest), Format("{:.1f}", times.deviation)});
}

// `make(row, cells)` makes the cells of one of `rows`.
template <typename Of, typename Make>
void SetRows(Table& table, std::vector<Of> rows, Make make) {
  table.row_count = rows.size();
  table.row = [rows = std::make_shared<const std::vector<Of>>(std::move(rows)),
               make = std::move(make)](size_t index, Row& cells) { make((*rows)[index], cells); };
}

// The sum over rows that hold Statistics.
template <typename Of>
uint64_t WholeOf(const std::vector<Of>& rows) {
  uint64_t whole = 0;
  for (const Of& row : rows) whole = AddSaturated(whole, row.times.total);
  return whole;
}

// Largest total first, equal ones as they were.
template <typename Of>
void SortByTotal(std::vector<Of>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Of& a, const Of& b) { return a.times.total > b.times.total; });
}

// The data that tables are made of.
struct TableSource {
  TableSource(Analysis& of, const ViewOptions& with)
      : analysis(of), options(with), names(of, with.TableKernelNames()) {}

  Analysis& analysis;
  const ViewOptions& options;
  const GpuNames names;
  std::string notes = {};  // for standard error: lines
  // Calls FindGpuBusy once.
  const std::vector<GpuBusy>& busy();
  // The call paths of launches, whose names were looked up ahead.
  CallPaths& paths();

 private:
  std::unique_ptr<CallPaths> paths_;
  std::optional<std::vector<GpuBusy>> busy_;
};

// "1.500": 10^6 bytes, for columns in MB.
std::string Megabytes(double bytes);

void FillKernels(TableSource& source, Table& table);
void FillKernelShapes(TableSource& source, Table& table);
void FillGraphs(TableSource& source, Table& table);
void FillCopyTimes(TableSource& source, Table& table);
void FillCopySizes(TableSource& source, Table& table);
void FillGpuWork(TableSource& source, Table& table);
void FillApis(TableSource& source, Table& table);
void FillApisAndGpuWork(TableSource& source, Table& table);
void FillOverheads(TableSource& source, Table& table);
void FillJit(TableSource& source, Table& table);
void FillFunctions(TableSource& source, Table& table);
void FillIdle(TableSource& source, Table& table);
void FillWaits(TableSource& source, Table& table);
// In top_functions.cpp. The second has columns of its own.
void FillPaths(TableSource& source, Table& table);
void FillCallTree(TableSource& source, Table& table);
void FillAllFunctions(TableSource& source, Table& table);
void FillThreads(TableSource& source, Table& table);
void FillProbes(TableSource& source, Table& table);
// In top_traces.cpp: a row an event.
void FillExecutions(TableSource& source, Table& table);
void FillAllocations(TableSource& source, Table& table);
void FillGpuTrace(TableSource& source, Table& table);
void FillApiTrace(TableSource& source, Table& table);
// In top_workload.cpp.
void FillOperators(TableSource& source, Table& table);
void FillModules(TableSource& source, Table& table);
void FillLibraries(TableSource& source, Table& table);
void FillSteps(TableSource& source, Table& table);
void FillStepTrace(TableSource& source, Table& table);
// In top_ranks.cpp.
void FillCollectives(TableSource& source, Table& table);
void FillCollectiveTrace(TableSource& source, Table& table);
void FillStragglers(TableSource& source, Table& table);
void FillRanks(TableSource& source, Table& table);
void FillOverlap(TableSource& source, Table& table);
void FillOverlapTrace(TableSource& source, Table& table);
void FillHostClocks(TableSource& source, Table& table);
// In top_waits.cpp.
void FillCriticalPath(TableSource& source, Table& table);
void FillWhatIf(TableSource& source, Table& table);
void FillOffCpu(TableSource& source, Table& table);
void FillWakeUps(TableSource& source, Table& table);
void FillLocks(TableSource& source, Table& table);
// In top_nvtx.cpp.
void FillRanges(TableSource& source, Table& table);
void FillKernelsInRanges(TableSource& source, Table& table);
// In top_gpus.cpp.
void FillGpuMetrics(TableSource& source, Table& table);
void FillGpuThrottle(TableSource& source, Table& table);
void FillGpuLines(TableSource& source, Table& table);
void FillGpuFunctions(TableSource& source, Table& table);
void FillGpuStalls(TableSource& source, Table& table);
// In top_streams.cpp.
void FillUnfinished(TableSource& source, Table& table);
void FillBusy(TableSource& source, Table& table);
void FillGaps(TableSource& source, Table& table);

}  // namespace xpu
