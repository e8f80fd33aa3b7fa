#include "report/views/tables/table.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>

#include "format/base/split.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/base/text.h"

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

constexpr size_t kLongestRule = 80;
constexpr size_t kWidestPath = 100;
// Widest column before other columns: each row is padded to the widest.
constexpr size_t kWidestInside = 60;

std::string PathCell(const std::string& cell) {
  std::vector<std::string> frames;
  for (const std::string_view frame : Split(cell, ";")) {
    frames.push_back(ToWidth(frame, kWidestInside));
  }
  return ShortPath(frames, kWidestPath);
}

// The text of a cell of the column `at` of `table`.
std::string TextCell(const Table& table, size_t at, const std::string& cell) {
  const Column& column = table.columns[at];
  if (column.is_id) return cell;
  if (!column.is_text) {
    return cell.starts_with('-') ? "-" + WithThousands(cell.substr(1)) : WithThousands(cell);
  }
  if (column.is_path) return PathCell(cell);
  return at + 1 == table.columns.size() ? ForOneLine(cell) : ToWidth(cell, kWidestInside);
}

std::vector<size_t> Widths(const Table& table) {
  std::vector<size_t> widths;
  for (const Column& column : table.columns) widths.push_back(column.name.size());
  Row cells;
  for (size_t i = 0; i < table.shown(); ++i) {
    table.MakeShown(i, cells);
    for (size_t column = 0; column < widths.size(); ++column) {
      widths[column] = std::max(widths[column], WidthOf(TextCell(table, column, cells[column])));
    }
  }
  return widths;
}

std::string Aligned(const Table& table, const std::vector<size_t>& widths, const Row& cells) {
  std::string line = " ";
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t padding = widths[i] - std::min(widths[i], WidthOf(cells[i]));
    const bool is_text = table.columns[i].is_text;
    if (i > 0) line += "  ";
    if (!is_text) line.append(padding, ' ');
    line += cells[i];
    if (is_text && i + 1 < cells.size()) line.append(padding, ' ');
  }
  return line;
}

}  // namespace

long double NumberOf(const std::string& cell, long double otherwise) {
  std::from_chars(cell.data(), cell.data() + cell.size(), otherwise);
  return otherwise;
}

std::string HeadingOf(std::string_view column) {
  if (column == "Pid") return "PID";
  if (column == "Tid") return "TID";
  return std::string(column == "CorrId" ? "CorrID" : column);
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
  return Error{ErrorKind::kUsage,
               Format("'{}' is not one of the columns {}", wanted, Names(columns)), ""};
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

TableWriter::TableWriter(TableFormat format, Output& output)
    : format_(format), output_(output), colors_(ColorsOf(output)) {}

void TableWriter::Write(const Table& table, bool is_one_of_many) {
  switch (format_) {
    case TableFormat::kTable:
      WriteText(table, is_one_of_many);
      break;
    case TableFormat::kCsv:
      if (!is_first_) output_.Write("\n");
      if (is_one_of_many) output_.Write(ShownText::Of("# {}\n", table.name));
      WriteCsv(table);
      break;
    case TableFormat::kJson:
      WriteJson(table);
      break;
  }
  is_first_ = false;
}

void TableWriter::Close() {
  if (format_ == TableFormat::kJson)
    output_.Write(is_first_ ? Literal("{\n}\n") : Literal("\n}\n"));
  if (!empty_names_.empty()) output_.Write(ShownText::Of(" Empty tables: {}\n", empty_names_));
}

void TableWriter::WriteText(const Table& table, bool is_one_of_many) {
  if (is_one_of_many && table.shown() == 0) {
    AppendFormat(empty_names_, "{}{}", empty_names_.empty() ? "" : ", ", table.name);
    return;
  }
  output_.Write(ShownText::Of(" ** {} ({}):", colors_.Title(table.title), table.name));
  if (table.shown() == 0) {
    output_.Write(" no rows\n\n");
    return;
  }
  output_.Write("\n\n");
  const std::vector<size_t> widths = Widths(table);
  Row names;
  Row rules;
  for (size_t i = 0; i < widths.size(); ++i) {
    names.push_back(HeadingOf(table.columns[i].name));
    // Nothing is aligned after the last column, and paths may be longer than any screen.
    const bool is_last = i + 1 == widths.size() && table.columns[i].is_text;
    rules.emplace_back(is_last ? std::min(widths[i], kLongestRule) : widths[i], '-');
  }
  output_.Write(ShownText::Of("{}\n", colors_.Title(Aligned(table, widths, names))));
  output_.Write(ShownText::Of("{}\n", colors_.Faint(Aligned(table, widths, rules))));
  Row cells;
  for (size_t i = 0; i < table.shown() && !output_.failed(); ++i) {
    table.MakeShown(i, cells);
    for (size_t column = 0; column < cells.size(); ++column) {
      cells[column] = TextCell(table, column, cells[column]);
    }
    output_.Write(ShownText::Of("{}\n", Aligned(table, widths, cells)));
  }
  output_.Write("\n");
}

void TableWriter::WriteCsv(const Table& table) {
  CsvLine line;
  for (const Column& column : table.columns) line.Text(column.name);
  output_.Write(line.Take());
  Row cells;
  for (size_t i = 0; i < table.shown() && !output_.failed(); ++i) {
    table.MakeShown(i, cells);
    for (size_t column = 0; column < cells.size(); ++column) {
      if (table.columns[column].is_text) {
        line.Text(cells[column]);
      } else {
        line.Number(cells[column]);
      }
    }
    output_.Write(line.Take());
  }
}

void TableWriter::WriteJson(const Table& table) {
  JsonWriter json;
  json.Put(is_first_ ? Literal("{\n") : Literal(",\n"));
  json.PutString(table.name);
  json.Put(": [");
  Row cells;
  for (size_t i = 0; i < table.shown() && !output_.failed(); ++i) {
    table.MakeShown(i, cells);
    json.Put(i == 0 ? Literal("\n  {") : Literal(",\n  {"));
    for (size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) json.Put(", ");
      json.PutString(table.columns[column].name);
      json.Put(": ");
      if (table.columns[column].is_text) {
        json.PutString(cells[column]);
      } else {
        json.PutDigits(cells[column]);
      }
    }
    json.Put('}');
    output_.Write(json);
    json.Clear();
  }
  json.Put(table.shown() == 0 ? Literal("]") : Literal("\n]"));
  output_.Write(json);
}

}  // namespace xpu
