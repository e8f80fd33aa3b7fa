// Tables of what threads waited for: the time in which they did not run, and the critical path
// (critical_path_sum and what_if).
#include <cmath>
#include <cstdint>
#include <optional>

#include "format/base/terminal_text.h"
#include "report/analysis/call_paths.h"
#include "report/critical_path/what_if.h"
#include "report/query/off_cpu_sums.h"
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

// The path and what it is made of, for as long as a table is written.
struct Critical {
  explicit Critical(TableSource& source)
      : paths(source.analysis, {.graph_stacks = source.options.tree.paths.graph_stacks}) {
    paths.NameAhead({.samples = true, .launches = true, .off_cpu_waits = true});
    path.emplace(source.analysis, paths, source.options.steps);
  }

  CallPaths paths;
  std::optional<CriticalPath> path;
};

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

void FillCriticalPath(TableSource& source, Table& table) {
  struct Rows : Critical {
    using Critical::Critical;
    std::vector<CriticalSum> rows;
  };
  const auto all = std::make_shared<Rows>(source);
  all->rows = CriticalSums(source.analysis, all->paths, *all->path, source.names);
  table.row_count = all->rows.size();
  table.row = [all, &frames = source.analysis.frames](size_t index, Row& cells) {
    const CriticalSum& row = all->rows[index];
    const CriticalWindow& window = all->path->window();
    AppendTimes(row.times, window.ns(), cells);
    cells.push_back(std::to_string(window.StepNs(row.times.total)));
    cells.push_back(std::to_string(row.assumed_ns));
    cells.emplace_back(EdgeKindName(row.kind));
    cells.push_back(row.thread);
    cells.push_back(row.what);
    cells.push_back(FoldedText(frames, all->paths.tree().Path(row.path)));
  };
}

void FillWhatIf(TableSource& source, Table& table) {
  constexpr double kTwiceAsFast = 0.5;
  constexpr size_t kMost = 4;
  Critical critical(source);
  std::vector<Prediction> rows;
  if (!critical.path->empty()) {
    WhatIf what_if(source.analysis, critical.paths, *critical.path);
    for (const Speedup& speedup : source.options.speedups) {
      rows.push_back(what_if.Evaluate(speedup));
      if (rows.back().matches) continue;
      AppendFormat(source.notes, "--what-if {}: matches nothing in the steps\n",
                   ForOneLine(SpeedupText(speedup)));
    }
    if (source.options.speedups.empty()) rows = what_if.Candidates(kTwiceAsFast, kMost);
  }
  SetRows(table, std::move(rows),
          [window = critical.path->window()](const Prediction& row, Row& cells) {
            const uint64_t ns = window.ns();
            // Longer: negative, but what rounds to 0 is.
            const auto shorter = [&](uint64_t then_ns) {
              const double percent = std::round(10 * (100.0 - PercentOf(then_ns, ns))) / 10;
              return Format("{:.1f}", percent == 0 ? 0.0 : percent);
            };
            cells.assign(
                {Format("{:.2f}", row.speedup.factor), Format("{:.1f}", PercentOf(row.path_ns, ns)),
                 Format("{:.1f}", PercentOf(row.assumed_ns, ns)), std::to_string(window.StepNs(ns)),
                 std::to_string(window.StepNs(row.predicted_ns)), shorter(row.predicted_ns),
                 shorter(row.least_ns), SpeedupText(row.speedup)});
          });
}

}  // namespace xpu
