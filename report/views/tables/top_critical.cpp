// critical_path_sum and what_if.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/critical_path/what_if.h"
#include "report/views/tables/top_cells.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

// The path and what it is made of, for as long as a table is written.
struct Critical {
  explicit Critical(TableSource& source)
      : paths(source.analysis, {.graph_stacks = source.options.graph_stacks}) {
    paths.NameAhead({.samples = true, .launches = true, .off_cpu_waits = true});
    path.emplace(source.analysis, paths, source.options.critical);
  }

  CallPaths paths;
  std::optional<CriticalPath> path;
};

}  // namespace

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
