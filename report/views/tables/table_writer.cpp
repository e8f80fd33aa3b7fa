#include "report/views/tables/table_writer.h"

#include <algorithm>

#include "format/base/split.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/output/text.h"

namespace xpu {
namespace {

constexpr size_t kLongestRule = 80;
constexpr size_t kWidestPath = 100;
// What stands before other columns: each row is padded to the widest.
constexpr size_t kWidestInside = 60;

std::string PathCell(const std::string& cell) {
  std::vector<std::string> frames;
  for (const std::string_view frame : Split(cell, ";")) {
    frames.push_back(ToWidth(frame, kWidestInside));
  }
  return ShortPath(frames, kWidestPath);
}

// Of the column `at` of `table`.
std::string TextCell(const Table& table, size_t at, const std::string& cell) {
  const Column& column = table.columns[at];
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

TableWriter::TableWriter(TableFormat format, Output& output)
    : format_(format), output_(output), colors_(ColorsOf(output)) {}

void TableWriter::Write(const Table& table, bool is_one_of_many) {
  switch (format_) {
    case TableFormat::kTable:
      WriteText(table, is_one_of_many);
      break;
    case TableFormat::kCsv:
      if (!is_first_) output_.Write("\n");
      if (is_one_of_many) output_.Write("# " + table.name + "\n");
      WriteCsv(table);
      break;
    case TableFormat::kJson:
      WriteJson(table);
      break;
  }
  is_first_ = false;
}

void TableWriter::Close() {
  if (format_ == TableFormat::kJson) output_.Write(is_first_ ? "{\n}\n" : "\n}\n");
  if (!empty_names_.empty()) output_.Write(Format(" Without rows: {}\n", empty_names_));
}

void TableWriter::WriteText(const Table& table, bool is_one_of_many) {
  if (is_one_of_many && table.shown() == 0) {
    AppendFormat(empty_names_, "{}{}", empty_names_.empty() ? "" : ", ", table.name);
    return;
  }
  output_.Write(" ** " + colors_.Title(table.title) + Format(" ({}):", table.name));
  if (table.shown() == 0) {
    output_.Write(" no rows\n\n");
    return;
  }
  output_.Write("\n\n");
  const std::vector<size_t> widths = Widths(table);
  Row names;
  Row rules;
  for (size_t i = 0; i < widths.size(); ++i) {
    names.push_back(table.columns[i].name);
    // Nothing is aligned behind the last column, and paths may be longer than any screen.
    const bool is_last = i + 1 == widths.size() && table.columns[i].is_text;
    rules.emplace_back(is_last ? std::min(widths[i], kLongestRule) : widths[i], '-');
  }
  output_.Write(colors_.Title(Aligned(table, widths, names)) + "\n");
  output_.Write(colors_.Faint(Aligned(table, widths, rules)) + "\n");
  Row cells;
  for (size_t i = 0; i < table.shown() && !output_.failed(); ++i) {
    table.MakeShown(i, cells);
    for (size_t column = 0; column < cells.size(); ++column) {
      cells[column] = TextCell(table, column, cells[column]);
    }
    output_.Write(Aligned(table, widths, cells) + "\n");
  }
  output_.Write("\n");
}

void TableWriter::WriteCsv(const Table& table) {
  std::string line;
  for (const Column& column : table.columns) {
    if (!line.empty()) line += ',';
    line += ToCsvField(column.name);
  }
  output_.Write(line + "\n");
  Row cells;
  for (size_t i = 0; i < table.shown() && !output_.failed(); ++i) {
    table.MakeShown(i, cells);
    line.clear();
    for (size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) line += ',';
      line += ToCsvField(cells[column]);
    }
    line += '\n';
    output_.Write(line);
  }
}

void TableWriter::WriteJson(const Table& table) {
  std::string text = is_first_ ? "{\n" : ",\n";
  AppendJsonString(text, table.name);
  text += ": [";
  Row cells;
  for (size_t i = 0; i < table.shown() && !output_.failed(); ++i) {
    table.MakeShown(i, cells);
    text += i == 0 ? "\n  {" : ",\n  {";
    for (size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) text += ", ";
      AppendJsonString(text, table.columns[column].name);
      text += ": ";
      if (table.columns[column].is_text) {
        AppendJsonString(text, cells[column]);
      } else {
        text += cells[column].empty() ? "null" : cells[column];
      }
    }
    text += '}';
    output_.Write(text);
    text.clear();
  }
  output_.Write(text + (table.shown() == 0 ? "]" : "\n]"));
}

}  // namespace xpu
