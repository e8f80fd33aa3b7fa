// The tables of --top and --diff. Names and columns of the CUDA ones are those of `nsys stats`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/views/tables/table.h"
#include "report/views/tables/top_rows.h"
#include "report/views/view.h"

namespace xpu {

struct TableKind {
  std::string_view name;
  std::string_view title;
  std::string_view about;  // for --list-tables
  std::vector<Column> columns;
  // Sets the rows of a table that has these columns, the most important ones first. Rows may refer
  // to the source.
  void (*fill)(TableSource& source, Table& table) = nullptr;
  bool by_name_only = false;  // written when it is asked for: one row an event, or very wide
  // The columns that a comparison of two captures is about; empty: it has none.
  std::string_view total = {};
  std::string_view count = {};
  // Instead of `fill` for a table that is read, and not sorted: the rows need their order.
  void (*fill_for_reading)(TableSource& source, Table& table) = nullptr;
  bool shows_lines = false;  // of Python's calls, though no --lines asks for them
  // `total` is an average, in the row's own unit: what changed most comes first, up or down.
  bool is_average = false;
};

// All of them, in the order in which they are written.
const std::vector<TableKind>& TableKinds();
std::vector<std::string_view> TopTableNames();

bool IsTableName(std::string_view name);
// Whether the table of this name, or none, does: TableKind::shows_lines.
bool TableShowsLines(std::string_view name);

// The text of --list-tables: a line for each table, its name and what it is about.
std::string TopTableList();

// Whether there are such a table and column to sort by, and, for a comparison, something to
// compare.
Status CheckTopOptions(const ViewOptions& options, bool compares);
// Returns the tables that `options` ask for: one, or all that are not by name only.
std::vector<const TableKind*> WantedTables(const ViewOptions& options);

// All rows, unsorted.
Table MakeTable(const TableKind& kind, TableSource& source);

// A table of one capture. Its numbers are the sum of so many things, such as steps: those of one
// are compared.
struct DiffRun {
  Table table;
  double of_how_many = 1;
};
// The average of several captures is compared.
struct DiffSide {
  std::string_view name;
  std::vector<DiffRun> runs;
};

// In diff_table.cpp. Tables of one kind as one: what changed, name by name. Rows are joined by all
// their names ("name", or "module" and "function"); those of one name are added up. A kernel that
// is gone from a call path, and one that is new there, are one row. What grew most comes first,
// what shrank most last.
Table DiffTable(const TableKind& kind, const DiffSide& before, const DiffSide& after);

}  // namespace xpu
