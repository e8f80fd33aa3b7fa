// Tables in a database of SQLite.
//
// Texts are rows of the table StringIds, as in the exports of nsys, and cells hold their ids.
// Nothing is synchronized to the disk and there is no journal: an export that is interrupted is
// written again.
#pragma once

#include <memory>
#include <string>

#include "report/export/table_sink.h"

namespace xpu {

// An existing file is replaced.
Result<std::unique_ptr<TableSink>> OpenSqliteTables(const std::string& path);

std::string SqliteVersion();

}  // namespace xpu
