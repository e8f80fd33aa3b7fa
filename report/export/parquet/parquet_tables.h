// Tables in files of Parquet, one for each, compressed with zstd.
//
// A group of rows is collected, column by column, and written as a whole: this is what an export
// needs of memory, 50 MB for the widest table. Texts and numbers of a narrow range have a
// dictionary, other numbers are stored as differences.
#pragma once

#include <memory>
#include <string>

#include "report/export/table_sink.h"

namespace xpu {

// Makes the directory if it is not there. Files of the same names are replaced.
Result<std::unique_ptr<TableSink>> OpenParquetTables(const std::string& directory);

std::string ThriftVersion();

}  // namespace xpu
