// The tables of --top. Names and columns of the CUDA ones are those of `nsys stats`.
#pragma once

#include <string_view>
#include <vector>

#include "report/analysis.h"
#include "report/table.h"
#include "report/views.h"

namespace xpu {

// The names of all tables, in the order in which they are written.
std::vector<std::string_view> TopTableNames();

// Only those that `options` ask for, each with at most options.rows rows.
std::vector<Table> TopTables(Analysis& analysis, const TopOptions& options);

}  // namespace xpu
