// The rows of each table of --top: TableKind::fill.
#pragma once

#include <string>

#include "report/analysis/analysis.h"
#include "report/analysis/gpu_names.h"
#include "report/views/tables/table.h"
#include "report/views/view.h"

namespace xpu {

// What tables are made of.
struct TableSource {
  TableSource(Analysis& of, const TopOptions& with)
      : analysis(of), options(with), names(of, with.kernel_names) {}

  Analysis& analysis;
  const TopOptions& options;
  const GpuNames names;
  std::string notes = {};  // for standard error: lines
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
// In top_operators.cpp.
void FillOperators(TableSource& source, Table& table);
void FillModules(TableSource& source, Table& table);
void FillLibraries(TableSource& source, Table& table);
// In top_steps.cpp.
void FillSteps(TableSource& source, Table& table);
void FillStepTrace(TableSource& source, Table& table);
// In top_ranks.cpp.
void FillCollectives(TableSource& source, Table& table);
void FillCollectiveTrace(TableSource& source, Table& table);
void FillStragglers(TableSource& source, Table& table);
void FillOverlap(TableSource& source, Table& table);
void FillOverlapTrace(TableSource& source, Table& table);
void FillHostClocks(TableSource& source, Table& table);
// In top_critical.cpp.
void FillCriticalPath(TableSource& source, Table& table);
void FillWhatIf(TableSource& source, Table& table);
// In top_nvtx.cpp.
void FillRanges(TableSource& source, Table& table);
void FillKernelsInRanges(TableSource& source, Table& table);
// In top_off_cpu.cpp.
void FillOffCpu(TableSource& source, Table& table);
void FillWakeUps(TableSource& source, Table& table);
void FillLocks(TableSource& source, Table& table);
// In top_gpu_metrics.cpp.
void FillGpuMetrics(TableSource& source, Table& table);
void FillGpuThrottle(TableSource& source, Table& table);
// In top_gpu_code.cpp.
void FillGpuLines(TableSource& source, Table& table);
void FillGpuFunctions(TableSource& source, Table& table);
void FillGpuStalls(TableSource& source, Table& table);
// In top_unfinished.cpp.
void FillUnfinished(TableSource& source, Table& table);
// In top_streams.cpp.
void FillBusy(TableSource& source, Table& table);
void FillGaps(TableSource& source, Table& table);

}  // namespace xpu
