#include "report/export/text_tables.h"

#include <cerrno>
#include <utility>

#include <sys/stat.h>

#include "format/base/check.h"
#include "format/base/json_text.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/output/text.h"

namespace xpu {

Status MakeTableDirectory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    return SystemError(Format("{}: create directory", directory), errno);
  }
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return Error{ErrorKind::kUsage, Format("{}: not a directory", directory),
                 "-o DIR: each table becomes a file in it"};
  }
  return Ok();
}

Result<std::unique_ptr<TextTables>> TextTables::Open(const std::string& directory,
                                                     TextTableFormat format) {
  XPU_RETURN_IF_ERROR(MakeTableDirectory(directory));
  return std::unique_ptr<TextTables>(new TextTables(directory, format));
}

void TextTables::Begin(std::string_view table, std::span<const ExportColumn> columns) {
  if (failed()) return;
  const bool is_csv = format_ == TextTableFormat::kCsv;
  Result<Output> output =
      Output::Open(Format("{}/{}.{}", directory_, table, is_csv ? "csv" : "ndjson"));
  if (!output.ok()) {
    status_ = output.error();
    return;
  }
  output_.emplace(std::move(output).value());
  before_.clear();
  line_.clear();
  for (const ExportColumn& column : columns) {
    const bool is_first = before_.empty();
    if (is_csv) {
      line_ += is_first ? "" : ",";
      line_ += column.name;
      before_.emplace_back(is_first ? "" : ",");
    } else {
      before_.push_back(Format("{}\"{}\":", is_first ? '{' : ',', column.name));
    }
  }
  line_ += '\n';
  if (is_csv) output_->Write(line_);
  line_.clear();
  column_ = 0;
}

void TextTables::BeginCell() {
  XPU_CHECK(column_ < before_.size());
  line_ += before_[column_++];
}

void TextTables::Signed(int64_t value) {
  if (failed()) return;
  BeginCell();
  AppendFormat(line_, "{}", value);
}

void TextTables::Unsigned(uint64_t value) {
  if (failed()) return;
  BeginCell();
  AppendFormat(line_, "{}", value);
}

void TextTables::Text(std::string_view text) {
  if (failed()) return;
  BeginCell();
  if (format_ == TextTableFormat::kCsv) {
    // Quoted even when it is empty: without quotes it would be no text at all.
    line_ += text.empty() ? "\"\"" : ToCsvField(text);
  } else {
    AppendJsonString(line_, text);
  }
}

void TextTables::Null() {
  if (failed()) return;
  BeginCell();
  if (format_ == TextTableFormat::kNdjson) line_ += "null";
}

void TextTables::EndRow() {
  if (failed()) return;
  XPU_CHECK(column_ == before_.size());
  line_ += format_ == TextTableFormat::kNdjson ? "}\n" : "\n";
  output_->Write(line_);
  line_.clear();
  column_ = 0;
}

void TextTables::End() {
  if (!output_) return;
  Status closed = output_->Close();
  output_.reset();
  if (status_.ok()) status_ = std::move(closed);
}

bool TextTables::failed() const { return !status_.ok() || (output_ && output_->failed()); }

Status TextTables::Close() {
  End();
  return status_;
}

}  // namespace xpu
