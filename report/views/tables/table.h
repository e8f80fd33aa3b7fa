// A table: its rows are made when they are written (TableWriter), so a table of every event
// needs no memory for their text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/base/output.h"
#include "report/views/view.h"

namespace xpu {

struct Column {
  std::string name;
  bool is_text = false;  // aligned left; numbers right
  bool is_path = false;  // a text of frames, outermost first, with a ; between two
  bool is_id = false;    // a number that names something, without thousands
  // A text that describes the row without naming it, and may change from capture to capture.
  bool is_description = false;
  bool is_key_number = false;  // a number that names the row together with its texts

  bool is_key() const { return (is_text && !is_description) || is_key_number; }
};

// The cells of one row. Numbers as CSV and JSON have them; a number that is not known is empty.
using Row = std::vector<std::string>;

struct Table {
  std::string name;   // "cuda_gpu_kern_sum"
  std::string title;  // "CUDA GPU Kernel Summary"
  std::vector<Column> columns;
  size_t row_count = 0;
  // Sets the cells of a row, as many as there are columns, for any row in any order.
  std::function<void(size_t index, Row& cells)> row = {};
  std::string unit = {};  // of what columns of time count in its place; empty: they are of time
  // Which rows in which order; empty: all as they come.
  std::vector<uint32_t> order = {};

  size_t shown() const { return order.empty() ? row_count : order.size(); }
  void MakeShown(size_t at, Row& cells) const { row(order.empty() ? at : order[at], cells); }
};

// The number in a cell; `otherwise` for an empty one. Exact for all 64-bit integers where long
// double has 64 bits of fraction, as on x86.
long double NumberOf(const std::string& cell, long double otherwise);

// "PID" for "Pid": nsys, whose names scripts know, writes some columns in two ways.
std::string HeadingOf(std::string_view column);

// The column that the user means: its name in any case, or its beginning. Of several that begin so
// it is the first that is not a share.
Result<size_t> FindColumn(const std::vector<Column>& columns, std::string_view wanted);

// Numbers descending, texts ascending; equal rows as they were, unknown numbers last.
void SortBy(Table& table, size_t column);
// The first rows only, 0: all.
void LimitRows(Table& table, uint64_t rows);

// Tables as aligned columns, CSV or JSON.
//
// Text: a title, then columns; numbers get thousands separators, as nsys writes them. Of many
// tables those without rows are named at the end.
// CSV: a line of names, then one per row; between several tables an empty line and "# NAME".
// JSON: {"NAME": [{"COLUMN": value, ...}, ...], ...}; numbers are numbers, null when not known.
class TableWriter {
 public:
  TableWriter(TableFormat format, Output& output);

  // `is_one_of_many`: CSV tells it by its name.
  void Write(const Table& table, bool is_one_of_many);
  // After the last table.
  void Close();

 private:
  void WriteText(const Table& table, bool is_one_of_many);
  void WriteCsv(const Table& table);
  void WriteJson(const Table& table);

  const TableFormat format_;
  Output& output_;
  const Colors colors_;
  bool is_first_ = true;
  std::string empty_names_;
};

}  // namespace xpu
