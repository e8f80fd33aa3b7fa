// Tables as text: a directory with a file for each.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/base/json_writer.h"
#include "report/base/output.h"
#include "report/base/text.h"
#include "report/export/table_sink.h"

namespace xpu {

enum class TextTableFormat : uint8_t {
  kCsv,     // RFC 4180, the names of the columns first
  kNdjson,  // a JSON object on each line
};

// That of -o, where each table is a file; it may be there.
Status MakeTableDirectory(const std::string& directory);

class TextTables final : public TableSink {
 public:
  // Makes the directory if it is not there. Files of the same names are replaced.
  static Result<std::unique_ptr<TextTables>> Open(const std::string& directory,
                                                  TextTableFormat format);

  void Begin(std::string_view table, std::span<const ExportColumn> columns) override;
  void Signed(int64_t value) override;
  void Unsigned(uint64_t value) override;
  void Text(std::string_view text) override;
  void Null() override;
  void EndRow() override;
  void End() override;
  bool failed() const override;
  Status Close() override;

 private:
  TextTables(std::string directory, TextTableFormat format)
      : directory_(std::move(directory)), format_(format) {}
  // Writes what precedes the value of the next cell.
  void BeginCell();
  void Number(std::integral auto value);

  const std::string directory_;
  const TextTableFormat format_;
  std::optional<Output> output_;   // of the table that is begun
  std::vector<std::string> keys_;  // of its columns
  size_t column_ = 0;
  CsvLine csv_;  // the row so far, in one of both
  JsonWriter json_;
  Status status_ = Ok();
};

}  // namespace xpu
