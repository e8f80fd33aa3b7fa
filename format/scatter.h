// Columns of numbers to the events of a list: gather.h the other way round.
//
// Most fields have one value in a whole block. To write out the columns of all and to put the rows
// together from them was a third of the time that reading a block took. So what all rows have is
// put into one, and the rows are made in tiles that stay in the cache: copies of that one, into
// which the columns of the rest are put.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/events.h"

namespace xpu {

struct ColumnToScatter {
  uint64_t all = 0;
  std::span<const uint64_t> values{};  // empty: all are `all`
};

// One column for each field, in the order of VisitFields. `from_number(number, field)` sets a field
// and says whether that can be; false: it could not.
template <typename Event, typename FromNumber>
bool ScatterColumns(const std::array<ColumnToScatter, FieldCount<Event>()>& columns, size_t rows,
                    FromNumber&& from_number, std::vector<Event>& list) {
  constexpr size_t kTileRows = 32;
  if (rows == 0) return true;
  bool is_whole = true;
  Event row;
  size_t place = 0;
  VisitFields(row, [&](const char*, auto& field) {
    const ColumnToScatter& column = columns[place++];
    if (column.values.empty()) is_whole &= from_number(column.all, field);
  });
  list.clear();
  list.reserve(rows);
  for (size_t begin = 0; begin < rows; begin += kTileRows) {
    const size_t count = std::min(kTileRows, rows - begin);
    list.insert(list.end(), count, row);
    place = 0;
    VisitFields(list[begin], [&]<typename Field>(const char*, Field& field) {
      const ColumnToScatter& column = columns[place++];
      if (column.values.empty()) return;
      auto* const bytes = reinterpret_cast<std::byte*>(&field);
      for (size_t i = 0; i < count; ++i) {
        auto& of_row = *reinterpret_cast<Field*>(bytes + i * sizeof(Event));
        is_whole &= from_number(column.values[begin + i], of_row);
      }
    });
  }
  return is_whole;
}

}  // namespace xpu
