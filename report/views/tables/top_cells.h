// Cells and rows that several tables have.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/analysis/call_tree.h"
#include "report/output/text.h"
#include "report/query/statistics.h"
#include "report/stacks/frames.h"
#include "report/views/tables/table.h"

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

}  // namespace xpu
