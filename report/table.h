// A table of text, written as aligned columns, CSV or JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/output.h"

namespace xpu {

struct Table {
  std::string name;   // "cuda_gpu_kern_sum"
  std::string title;  // "CUDA GPU Kernel Summary"
  std::vector<std::string> columns;
  // Columns from this one on are text, aligned left; those before are numbers, aligned right.
  size_t first_text_column = 0;
  std::vector<std::vector<std::string>> rows;  // numbers as CSV and JSON have them
};

// Numbers get thousands separators, as nsys writes them.
void WriteAsText(const Table& table, Output& output);
void WriteAsCsv(const Table& table, Output& output);
// {"name": [{"column": value, ...}, ...], ...}
void WriteAsJson(const std::vector<Table>& tables, Output& output);

}  // namespace xpu
