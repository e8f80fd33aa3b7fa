// Tables of the time in which threads did not run.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/output/text.h"
#include "report/query/off_cpu_sums.h"
#include "report/views/tables/top_cells.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

// The rows and what their paths are of, for as long as a table is written.
template <typename Of>
struct PathRows {
  explicit PathRows(Analysis& analysis) : paths(analysis, {}) {
    paths.NameAhead({.off_cpu_waits = true});
  }

  CallPaths paths;
  std::vector<Of> rows;
  uint64_t whole = 0;
};

// `make(row, text of its path, whole, cells)` makes the cells.
template <typename Of, typename Find, typename Make>
void SetPathRows(TableSource& source, Table& table, Find find, Make make) {
  const auto all = std::make_shared<PathRows<Of>>(source.analysis);
  all->rows = find(source.analysis, all->paths);
  all->whole = WholeOf(all->rows);
  table.row_count = all->rows.size();
  table.row = [all, &frames = source.analysis.frames, make](size_t index, Row& cells) {
    const Of& row = all->rows[index];
    make(row, FoldedText(frames, all->paths.tree().Path(row.path)), all->whole, cells);
  };
}

void Append(std::initializer_list<std::string> more, Row& cells) {
  cells.insert(cells.end(), more.begin(), more.end());
}

// "worker/4711"
std::string HolderText(const Analysis& analysis, const LockWaits& row) {
  return row.holder == 0 ? std::string() : analysis.processes.ThreadTitle(row.process, row.holder);
}

}  // namespace

void FillOffCpu(TableSource& source, Table& table) {
  SetPathRows<OffCpuReason>(
      source, table, OffCpuReasons,
      [](const OffCpuReason& row, const std::string& path, uint64_t whole, Row& cells) {
        AppendTimes(row.times, whole, cells);
        if (row.is_sum) {
          for (const size_t unknown : {4, 5, 6, 7}) cells[unknown].clear();
        }
        Append({std::to_string(row.runnable_ns), row.times.name, path}, cells);
      });
}

void FillWakeUps(TableSource& source, Table& table) {
  SetPathRows<WakeUps>(source, table, FindWakeUps,
                       [](const WakeUps& row, const std::string& path, uint64_t whole, Row& cells) {
                         AppendTimes(row.times, whole, cells);
                         Append({row.waker, row.woken, row.reason, path}, cells);
                       });
}

void FillLocks(TableSource& source, Table& table) {
  const Analysis& analysis = source.analysis;
  SetPathRows<LockWaits>(
      source, table, FindLockWaits,
      [&analysis](const LockWaits& row, const std::string& path, uint64_t whole, Row& cells) {
        cells.assign({Percent(row.times.total, whole), std::to_string(row.times.total),
                      std::to_string(row.times.count), Format("{:.1f}", row.times.average),
                      std::to_string(row.times.largest), std::to_string(row.threads),
                      std::to_string(row.open), std::to_string(row.pid),
                      Format("{:#x}", row.address), row.releasers, HolderText(analysis, row),
                      path});
      });
}

}  // namespace xpu
