// Parts of a Parquet file: the values of a column, which
// https://parquet.apache.org/docs/file-format describes, and metadata, in Thrift's compact
// encoding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace xpu {

// The bits that numbers up to `most` need.
int BitWidth(uint64_t most);

// The hybrid of runs and packed bits, of definition levels and places in dictionaries.
void AppendRuns(std::string& out, std::span<const uint32_t> values, int bit_width);

// DELTA_BINARY_PACKED: differences, each block of them above its smallest one.
void AppendDeltas(std::string& out, std::span<const int64_t> values);

// Little-endian.
void AppendFixed32(std::string& out, uint32_t value);
void AppendFixed64(std::string& out, uint64_t value);

// ---- metadata

// These are from parquet.thrift; values are stored in the file.
enum class ParquetEncoding : int32_t { kPlain = 0, kRle = 3, kDelta = 5, kDictionary = 8 };
enum class ParquetType : int32_t { kInt64 = 2, kByteArray = 6 };

struct ParquetColumn {
  std::string name;
  ParquetType type = ParquetType::kInt64;
};

// The part of a column that is in one group of rows.
struct ParquetChunk {
  ParquetEncoding encoding = ParquetEncoding::kPlain;
  uint64_t rows = 0;
  uint64_t offset = 0;       // of its first page
  uint64_t data_offset = 0;  // of its page of values
  uint64_t size_bytes = 0;   // of its pages with their headers
  uint64_t unpacked_bytes = 0;
};

struct ParquetGroup {
  uint64_t rows = 0;
  std::vector<ParquetChunk> chunks;  // of each column
};

struct ParquetPage {
  bool is_dictionary = false;
  ParquetEncoding encoding = ParquetEncoding::kPlain;
  uint64_t values = 0;
  uint64_t unpacked_bytes = 0;
  uint64_t packed_bytes = 0;
};

std::string PageHeader(const ParquetPage& page);
std::string FileMetadata(const std::vector<ParquetColumn>& columns,
                         const std::vector<ParquetGroup>& groups);

}  // namespace xpu
