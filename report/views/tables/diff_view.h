// Two tables of the same kind as one: what changed, name by name.
#pragma once

#include "report/views/tables/top_tables.h"

namespace xpu {

// Rows are joined by all their texts ("name", or "module" and "function"); those of one name are
// added up. What grew most comes first, what shrank most last.
Table DiffTable(const TableKind& kind, const Table& before, const Table& after);

}  // namespace xpu
