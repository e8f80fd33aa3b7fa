#include "report/views/tables/table.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>

#include "format/base/text.h"

namespace xpu {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string Names(const std::vector<Column>& columns) {
  std::string names;
  for (const Column& column : columns) names += (names.empty() ? "" : ", ") + column.name;
  return names;
}

template <typename Key, typename Before>
void SortByKeys(std::vector<uint32_t>& order, const std::vector<Key>& keys, Before before) {
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return before(keys[a], keys[b]); });
}

}  // namespace

long double NumberOf(const std::string& cell, long double otherwise) {
  std::from_chars(cell.data(), cell.data() + cell.size(), otherwise);
  return otherwise;
}

Result<size_t> FindColumn(const std::vector<Column>& columns, std::string_view wanted) {
  const std::string text = Lower(wanted);
  std::optional<size_t> found;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string name = Lower(columns[i].name);
    if (name == text) return i;
    // Shares are rounded: what they are shares of sorts better.
    const bool is_better =
        !found || (columns[*found].name.ends_with("(%)") && !name.ends_with("(%)"));
    if (name.starts_with(text) && is_better) found = i;
  }
  if (found) return *found;
  // "total": "GPU Total Time (ns)"
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string name = Lower(columns[i].name);
    if (!name.ends_with("(%)") && name.find(" " + text) != std::string::npos) return i;
  }
  return Error{ErrorKind::kUsage, Format("'{}' is no column of {}", wanted, Names(columns)), ""};
}

void SortBy(Table& table, size_t column) {
  if (table.order.empty()) {
    table.order.resize(table.row_count);
    std::iota(table.order.begin(), table.order.end(), 0u);
  }
  Row cells;
  const auto keys_of = [&](auto key_of) {
    std::vector<decltype(key_of(std::string()))> keys(table.row_count);
    for (const uint32_t i : table.order) {
      table.row(i, cells);
      keys[i] = key_of(cells[column]);
    }
    return keys;
  };
  if (table.columns[column].is_text) {
    SortByKeys(table.order, keys_of([](std::string cell) { return cell; }), std::less<>());
  } else {
    SortByKeys(table.order, keys_of([](const std::string& cell) {
                 return NumberOf(cell, -std::numeric_limits<long double>::infinity());
               }),
               std::greater<>());
  }
}

void LimitRows(Table& table, uint64_t rows) {
  if (rows == 0 || rows >= table.shown()) return;
  if (table.order.empty()) {
    table.row_count = rows;
  } else {
    table.order.resize(rows);
  }
}

}  // namespace xpu
