// How Parquet writes the values of a column: https://parquet.apache.org/docs/file-format has the
// formats.
#pragma once

#include <cstdint>
#include <span>
#include <string>

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

}  // namespace xpu
