#include <algorithm>

#include "format/base/text.h"
#include "report/model/run_time.h"
#include "report/model/saturated.h"
#include "report/output/text.h"
#include "report/query/gpu_busy.h"
#include "report/views/tables/diff_rows.h"
#include "report/views/tables/table_writer.h"
#include "report/views/view.h"
#include "report/views/views.h"

namespace xpu {
namespace {

struct Whole {
  uint64_t run_ns = 0;
  uint64_t gpu_ns = 0;   // all work added up
  uint64_t busy_ns = 0;  // the union over streams, all GPUs
};

Whole WholeOf(const Analysis& analysis) {
  Whole whole{.run_ns = RunTimeNs(analysis.model)};
  for (const GpuWork& work : analysis.correlation.work) {
    if (work.kind == WorkKind::kSynchronization) continue;
    whole.gpu_ns = AddSaturated(whole.gpu_ns, work.duration_ns);
  }
  for (const GpuBusy& gpu : FindGpuBusy(analysis)) {
    whole.busy_ns = AddSaturated(whole.busy_ns, gpu.busy_ns);
  }
  return whole;
}

std::string Ratio(uint64_t before, uint64_t after) {
  if (before == 0) return "";
  return Format(" ({:.2f}x)", static_cast<double>(after) / static_cast<double>(before));
}

std::string WholeText(Analysis& before, Analysis& after) {
  const Whole a = WholeOf(before);
  const Whole b = WholeOf(after);
  return Format("before  {}: ran {}, GPU work {}, GPU busy {}\n", ToWidth(before.model.path, 80),
                HumanDuration(a.run_ns), HumanDuration(a.gpu_ns), HumanDuration(a.busy_ns)) +
         Format("after   {}: ran {}{}, GPU work {}{}, GPU busy {}{}\n",
                ToWidth(after.model.path, 80), HumanDuration(b.run_ns), Ratio(a.run_ns, b.run_ns),
                HumanDuration(b.gpu_ns), Ratio(a.gpu_ns, b.gpu_ns), HumanDuration(b.busy_ns),
                Ratio(a.busy_ns, b.busy_ns));
}

}  // namespace

void WriteDiff(Analysis& before, Analysis& after, const TopOptions& options, Output& output,
               std::string& notes) {
  const std::string whole = WholeText(before, after);
  // Readers of CSV and JSON expect nothing before the tables.
  if (options.format == TableFormat::kTable) {
    output.Write(whole + "\n");
  } else {
    notes += whole;
  }
  after.other_kernels = KernelNamesOf(before.model);
  before.other_kernels = KernelNamesOf(after.model);
  TableSource source_before(before, options);
  TableSource source_after(after, options);
  TableWriter writer(options.format, output);
  std::vector<const TableKind*> kinds = WantedTables(options);
  std::erase_if(kinds, [](const TableKind* kind) { return kind->total.empty(); });
  for (const TableKind* kind : kinds) {
    Table table = DiffTable(*kind, MakeTable(*kind, source_before), MakeTable(*kind, source_after));
    LimitRows(table, options.rows);
    writer.Write(table, kinds.size() > 1);
  }
  writer.Close();
}

View DiffView() {
  return {
      .option = "--diff",
      .help = "tables of what became slower since the capture BEFORE",
      .other_capture = "BEFORE",
      .shows_tables = true,
      .write =
          [](const ViewInput& input) {
            WriteDiff(*input.before, input.analysis, input.options.top, input.output, input.notes);
          },
  };
}

}  // namespace xpu
