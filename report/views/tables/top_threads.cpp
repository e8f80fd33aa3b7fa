// thread_sum: CPU and GPU time by process and thread.
#include "report/analysis/sampled_events.h"
#include "report/model/saturated.h"
#include "report/query/thread_times.h"
#include "report/views/tables/top_cells.h"
#include "report/views/tables/top_rows.h"

namespace xpu {

void FillThreads(TableSource& source, Table& table) {
  std::vector<ThreadTime> rows = ThreadTimes(source.analysis);
  if (!SamplesCountTime(source.analysis.model)) table.unit = SampleUnit(source.analysis.model);
  uint64_t cpu = 0;
  uint64_t gpu = 0;
  for (const ThreadTime& row : rows) {
    cpu = AddSaturated(cpu, row.cpu);
    gpu = AddSaturated(gpu, row.gpu_ns);
  }
  SetRows(table, std::move(rows), [cpu, gpu](const ThreadTime& row, Row& cells) {
    cells.assign({Percent(row.cpu, cpu), std::to_string(row.cpu), std::to_string(row.samples),
                  Percent(row.gpu_ns, gpu), std::to_string(row.gpu_ns),
                  std::to_string(row.gpu_work), std::to_string(row.pid), std::to_string(row.tid),
                  row.process_name, row.thread_name});
  });
}

}  // namespace xpu
