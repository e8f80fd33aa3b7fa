// Tables as aligned columns, CSV or JSON.
#pragma once

#include <string>

#include "report/output/colors.h"
#include "report/output/output.h"
#include "report/views/tables/table.h"
#include "report/views/views.h"

namespace xpu {

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
