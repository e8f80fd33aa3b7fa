#include "report/table.h"

#include <algorithm>

#include "format/base/text.h"
#include "report/text.h"

namespace xpu {
namespace {

std::string Cell(const Table& table, const std::vector<std::string>& row, size_t column) {
  if (column < table.first_text_column) return WithThousands(row[column]);
  std::string text = ToValidUtf8(row[column]);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

void WriteAsText(const Table& table, Output& output) {
  std::vector<size_t> widths;
  for (size_t column = 0; column < table.columns.size(); ++column) {
    size_t width = table.columns[column].size();
    for (const auto& row : table.rows) width = std::max(width, WidthOf(Cell(table, row, column)));
    widths.push_back(width);
  }
  const size_t last = table.columns.size() - 1;
  const auto line = [&](const auto& cell_of) {
    std::string text = " ";
    for (size_t column = 0; column <= last; ++column) {
      const std::string cell = cell_of(column);
      const size_t padding = widths[column] - std::min(widths[column], WidthOf(cell));
      const bool is_text = column >= table.first_text_column;
      if (!is_text) text.append(padding, ' ');
      text += cell;
      if (is_text && column < last) text.append(padding, ' ');
      if (column < last) text += "  ";
    }
    output.Write(text + "\n");
  };
  output.Write(Format(" ** {} ({}):\n\n", table.title, table.name));
  line([&](size_t column) { return table.columns[column]; });
  line([&](size_t column) { return std::string(widths[column], '-'); });
  for (const auto& row : table.rows) {
    line([&](size_t column) { return Cell(table, row, column); });
  }
  output.Write("\n");
}

void WriteAsCsv(const Table& table, Output& output) {
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (const std::string& cell : cells) {
      if (!text.empty()) text += ',';
      text += ToCsvField(cell);
    }
    output.Write(text + "\n");
  };
  line(table.columns);
  for (const auto& row : table.rows) line(row);
}

void WriteAsJson(const std::vector<Table>& tables, Output& output) {
  std::string text = "{";
  for (const Table& table : tables) {
    text += &table == &tables.front() ? "\n" : ",\n";
    AppendJsonString(text, table.name);
    text += ": [";
    for (const auto& row : table.rows) {
      text += &row == &table.rows.front() ? "\n  {" : ",\n  {";
      for (size_t column = 0; column < row.size(); ++column) {
        if (column > 0) text += ", ";
        AppendJsonString(text, table.columns[column]);
        text += ": ";
        if (column < table.first_text_column) {
          text += row[column];
        } else {
          AppendJsonString(text, row[column]);
        }
      }
      text += '}';
      output.Write(text);
      text.clear();
    }
    text += table.rows.empty() ? "]" : "\n]";
  }
  output.Write(text + "\n}\n");
}

}  // namespace xpu
