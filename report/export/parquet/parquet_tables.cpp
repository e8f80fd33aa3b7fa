#include "report/export/parquet/parquet_tables.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <zstd.h>

#include "format/base/check.h"
#include "format/base/handle.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/base/output.h"
#include "report/export/parquet/parquet_format.h"
#include "report/export/text_tables.h"

namespace xpu {
namespace {

constexpr char kMagic[] = "PAR1";
constexpr size_t kRowsOfGroup = size_t{1} << 17;
// Also ends a group: its dictionaries are whole in memory.
constexpr size_t kTextBytesOfGroup = size_t{32} << 20;
// Widest range of the numbers that a dictionary holds.
constexpr uint64_t kWidestRange = uint64_t{1} << 12;

// The values of a column in the group of rows that is being collected.
struct ColumnValues {
  bool is_text = false;
  std::vector<uint32_t> defined;  // of each row 1, or 0 for none
  bool has_null = false;
  std::vector<int64_t> numbers;
  std::vector<uint32_t> places;                       // of texts, in `texts`
  std::unordered_map<std::string, uint32_t> by_text;  // as they came
  std::vector<std::string> texts;                     // as they are written
  std::string last_text;                              // rows often repeat the one before
  uint32_t last_place = 0;

  void Clear() {
    defined.clear();
    has_null = false;
    numbers.clear();
    places.clear();
    by_text.clear();
    texts.clear();
  }
};

class ParquetTables final : public TableSink {
 public:
  explicit ParquetTables(std::string directory)
      : directory_(std::move(directory)), compressor_(ZSTD_createCCtx()) {
    XPU_CHECK(compressor_ != nullptr);
  }

  void Begin(std::string_view table, std::span<const ExportColumn> columns) override;
  void Signed(int64_t value) override { Next(true).numbers.push_back(value); }
  void Unsigned(uint64_t value) override { Signed(static_cast<int64_t>(value)); }
  void Text(std::string_view text) override;
  void Null() override { Next(false).has_null = true; }
  void EndRow() override;
  void End() override;
  bool failed() const override { return !status_.ok() || (output_ && output_->failed()); }
  Status Close() override {
    End();
    return status_;
  }

 private:
  ColumnValues& Next(bool is_defined) {
    XPU_CHECK(column_ < values_.size());
    ColumnValues& values = values_[column_++];
    values.defined.push_back(is_defined ? 1 : 0);
    return values;
  }
  void WriteGroup();
  ParquetChunk WriteChunk(const ColumnValues& values);
  void WritePage(ParquetChunk& chunk, ParquetPage page, const std::string& bytes);
  void WriteBytes(std::string_view bytes) {
    output_->WriteBytes(bytes);
    offset_ += bytes.size();
  }

  const std::string directory_;
  Handle<ZSTD_CCtx, ZSTD_freeCCtx> compressor_;
  std::optional<Output> output_;  // of the table that is begun
  uint64_t offset_ = 0;           // in it
  std::vector<ParquetColumn> columns_;
  std::vector<ColumnValues> values_;
  std::vector<ParquetGroup> groups_;
  size_t column_ = 0;
  size_t rows_ = 0;
  size_t text_bytes_ = 0;
  std::string packed_;
  Status status_ = Ok();
};

void ParquetTables::Begin(std::string_view table, std::span<const ExportColumn> columns) {
  columns_.clear();
  values_.clear();
  groups_.clear();
  for (const ExportColumn& column : columns) {
    const bool is_text = column.type == ColumnType::kText || column.type == ColumnType::kPlainText;
    columns_.push_back({.name = std::string(column.name),
                        .type = is_text ? ParquetType::kByteArray : ParquetType::kInt64});
    values_.emplace_back().is_text = is_text;
  }
  column_ = rows_ = text_bytes_ = 0;
  offset_ = 0;
  if (failed()) return;
  Result<Output> output = Output::Open(Format("{}/{}.parquet", directory_, table));
  if (!output.ok()) {
    status_ = output.error();
    return;
  }
  output_.emplace(std::move(output).value());
  WriteBytes(kMagic);
}

void ParquetTables::Text(std::string_view text) {
  ColumnValues& values = Next(true);
  if (values.texts.empty() || values.last_text != text) {
    const auto next = static_cast<uint32_t>(values.texts.size());
    const auto [known, is_new] = values.by_text.try_emplace(std::string(text), next);
    if (is_new) {
      values.texts.push_back(ForOneLine(text));
      text_bytes_ += 2 * text.size() + sizeof(std::string);
    }
    values.last_text = text;
    values.last_place = known->second;
  }
  values.places.push_back(values.last_place);
}

void ParquetTables::EndRow() {
  XPU_CHECK(column_ == values_.size());
  column_ = 0;
  ++rows_;
  if (rows_ >= kRowsOfGroup || text_bytes_ >= kTextBytesOfGroup) WriteGroup();
}

void ParquetTables::WritePage(ParquetChunk& chunk, ParquetPage page, const std::string& bytes) {
  packed_.resize(ZSTD_compressBound(bytes.size()));
  constexpr int kLevel = 1;
  const size_t packed = ZSTD_compressCCtx(compressor_.get(), packed_.data(), packed_.size(),
                                          bytes.data(), bytes.size(), kLevel);
  XPU_CHECK(ZSTD_isError(packed) == 0);
  page.unpacked_bytes = bytes.size();
  page.packed_bytes = packed;
  const std::string header = PageHeader(page);
  WriteBytes(header);
  WriteBytes(std::string_view(packed_).substr(0, packed));
  chunk.size_bytes += header.size() + packed;
  chunk.unpacked_bytes += header.size() + bytes.size();
}

// Dictionaries of numbers are made where the numbers lie close together, so that a place is found
// without a search.
ParquetChunk ParquetTables::WriteChunk(const ColumnValues& values) {
  ParquetChunk chunk{.rows = rows_, .offset = offset_};
  std::string dictionary;
  std::vector<uint32_t> number_places;
  const std::vector<uint32_t>* places = &values.places;
  uint64_t entries = 0;
  if (values.is_text) {
    for (const std::string& text : values.texts) {
      AppendFixed32(dictionary, static_cast<uint32_t>(text.size()));
      dictionary += text;
    }
    entries = values.texts.size();
  } else if (!values.numbers.empty()) {
    const auto [least, most] = std::minmax_element(values.numbers.begin(), values.numbers.end());
    const uint64_t range = static_cast<uint64_t>(*most) - static_cast<uint64_t>(*least);
    if (range < kWidestRange) {
      std::vector<uint32_t> place_of(range + 1);  // one more than it; 0: none yet
      number_places.reserve(values.numbers.size());
      for (const int64_t number : values.numbers) {
        uint32_t& place = place_of[static_cast<uint64_t>(number) - static_cast<uint64_t>(*least)];
        if (place == 0) {
          place = static_cast<uint32_t>(++entries);
          AppendFixed64(dictionary, static_cast<uint64_t>(number));
        }
        number_places.push_back(place - 1);
      }
      places = &number_places;
    }
  }
  const bool has_dictionary = entries > 0;
  chunk.encoding = has_dictionary   ? ParquetEncoding::kDictionary
                   : values.is_text ? ParquetEncoding::kPlain
                                    : ParquetEncoding::kDelta;
  if (has_dictionary) {
    WritePage(chunk, {.is_dictionary = true, .values = entries}, dictionary);
  }
  chunk.data_offset = offset_;
  std::string levels;
  AppendRuns(levels, values.defined, 1);
  std::string page;
  AppendFixed32(page, static_cast<uint32_t>(levels.size()));
  page += levels;
  if (has_dictionary) {
    const int width = BitWidth(entries - 1);
    page += static_cast<char>(width);
    AppendRuns(page, *places, width);
  } else if (!values.is_text) {
    AppendDeltas(page, values.numbers);
  }
  WritePage(chunk, {.encoding = chunk.encoding, .values = rows_}, page);
  return chunk;
}

void ParquetTables::WriteGroup() {
  if (rows_ == 0) return;
  ParquetGroup group{.rows = rows_, .chunks = {}};
  for (ColumnValues& values : values_) {
    if (!failed()) group.chunks.push_back(WriteChunk(values));
    values.Clear();
  }
  groups_.push_back(std::move(group));
  rows_ = text_bytes_ = 0;
}

void ParquetTables::End() {
  if (!output_) return;
  if (!failed()) {
    WriteGroup();
    const std::string metadata = FileMetadata(columns_, groups_);
    WriteBytes(metadata);
    std::string end;
    AppendFixed32(end, static_cast<uint32_t>(metadata.size()));
    WriteBytes(end + kMagic);
  }
  Status closed = output_->Close();
  output_.reset();
  if (status_.ok()) status_ = std::move(closed);
}

}  // namespace

Result<std::unique_ptr<TableSink>> OpenParquetTables(const std::string& directory) {
  XPU_RETURN_IF_ERROR(MakeTableDirectory(directory));
  return std::unique_ptr<TableSink>(std::make_unique<ParquetTables>(directory));
}

std::string ThriftVersion() { return XPU_THRIFT; }

}  // namespace xpu
