#include "report/export/text_tables.h"

#include <cerrno>
#include <utility>

#include <sys/stat.h>

#include "format/base/check.h"
#include "format/base/text.h"

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
  keys_.clear();
  for (const ExportColumn& column : columns) {
    keys_.emplace_back(column.name);
    csv_.Text(column.name);
  }
  const ShownText names = csv_.Take();
  if (is_csv) output_->Write(names);
  column_ = 0;
}

void TextTables::BeginCell() {
  XPU_CHECK(column_ < keys_.size());
  if (format_ == TextTableFormat::kNdjson) {
    json_.Put(column_ == 0 ? '{' : ',');
    json_.PutString(keys_[column_]);
    json_.Put(':');
  }
  ++column_;
}

void TextTables::Signed(int64_t value) { Number(value); }

void TextTables::Unsigned(uint64_t value) { Number(value); }

void TextTables::Number(std::integral auto value) {
  if (failed()) return;
  BeginCell();
  if (format_ == TextTableFormat::kCsv) {
    csv_.Number(std::to_string(value));
  } else {
    json_.PutNumber(value);
  }
}

void TextTables::Text(std::string_view text) {
  if (failed()) return;
  BeginCell();
  if (format_ == TextTableFormat::kCsv) {
    csv_.KnownText(text);
  } else {
    json_.PutString(text);
  }
}

void TextTables::Null() {
  if (failed()) return;
  BeginCell();
  if (format_ == TextTableFormat::kCsv) {
    csv_.Number({});
  } else {
    json_.Put("null");
  }
}

void TextTables::EndRow() {
  if (failed()) return;
  XPU_CHECK(column_ == keys_.size());
  if (format_ == TextTableFormat::kCsv) {
    output_->Write(csv_.Take());
  } else {
    json_.Put("}\n");
    output_->Write(json_);
    json_.Clear();
  }
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
