// The metadata of Parquet files, in Thrift's compact encoding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xpu {

// Of parquet.thrift; values are stored in the file.
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
