// The events of a list as columns of numbers.
//
// Most fields of most events have one value in a whole block: of a kernel's 50 some ten vary. To
// write out all of them as 64-bit numbers, column after column, was a fifth of what the recorder
// did for a launch. So the rows are gone through once, in tiles that stay in the cache, and only a
// field in which a second value occurs gets a column of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/events.h"

namespace xpu {

struct GatheredColumn {
  uint64_t first = 0;
  std::vector<uint64_t> values{};  // empty: all are `first`
};

// `field` is one of a row in an array of Events.
template <typename Event, typename T>
const T& OfLaterRow(const T& field, size_t rows_later) {
  const auto* place = reinterpret_cast<const std::byte*>(&field) + rows_later * sizeof(Event);
  return *reinterpret_cast<const T*>(place);
}

// One for each field, in the order of VisitFields. At least one row.
template <typename Event, typename ToNumber>
std::array<GatheredColumn, FieldCount<Event>()> GatherColumns(std::span<const Event> rows,
                                                              ToNumber&& to_number) {
  constexpr size_t kTileRows = 32;
  std::array<GatheredColumn, FieldCount<Event>()> columns;
  size_t place = 0;
  VisitFields(rows[0],
              [&](const char*, const auto& field) { columns[place++].first = to_number(field); });
  for (size_t begin = 0; begin < rows.size(); begin += kTileRows) {
    const size_t count = std::min(kTileRows, rows.size() - begin);
    place = 0;
    VisitFields(rows[begin], [&](const char*, const auto& field) {
      GatheredColumn& column = columns[place++];
      if (column.values.empty()) {
        uint64_t differing = 0;
        for (size_t i = 0; i < count; ++i) {
          differing |= to_number(OfLaterRow<Event>(field, i)) ^ column.first;
        }
        if (differing == 0) return;
        column.values.assign(rows.size(), column.first);
      }
      uint64_t* values = column.values.data() + begin;
      for (size_t i = 0; i < count; ++i) values[i] = to_number(OfLaterRow<Event>(field, i));
    });
  }
  return columns;
}

}  // namespace xpu
