// Where exported tables go. A table is begun with its columns and filled row by row, cell by cell,
// so that nothing but the sink's own buffers is in memory. Tables come one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "format/base/result.h"

namespace xpu {

enum class ColumnType : uint8_t {
  kKey,        // an integer, unique in the table: the one that other tables refer to
  kInteger,    // of 64 bits
  kText,       // UTF-8 without control characters; where a format has a table of texts, an id of it
  kPlainText,  // the same, but never an id
};

struct ExportColumn {
  std::string_view name;
  ColumnType type = ColumnType::kInteger;
};

constexpr ExportColumn KeyColumn(std::string_view name) { return {name, ColumnType::kKey}; }
constexpr ExportColumn TextColumn(std::string_view name) { return {name, ColumnType::kText}; }

class TableSink {
 public:
  virtual ~TableSink() = default;

  virtual void Begin(std::string_view table, std::span<const ExportColumn> columns) = 0;
  // The cells of a row, in the order of the columns.
  virtual void Signed(int64_t value) = 0;
  virtual void Unsigned(uint64_t value) = 0;
  // Any bytes: the sink escapes what its format cannot hold.
  virtual void Text(std::string_view text) = 0;
  virtual void Null() = 0;
  virtual void EndRow() = 0;
  virtual void End() = 0;

  // The first error sticks: later calls do nothing, Close returns it. Called once, after the last
  // table.
  virtual bool failed() const = 0;
  virtual Status Close() = 0;
};

}  // namespace xpu
