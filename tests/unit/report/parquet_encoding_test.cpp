#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "report/export/parquet/parquet_format.h"

namespace xpu {
namespace {

// Decoders of their own, after the description of the format.
class Decoder {
 public:
  explicit Decoder(const std::string& bytes) : bytes_(bytes) {}

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const uint8_t byte = Byte();
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  int64_t Zigzag() {
    const uint64_t value = Varint();
    return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  uint8_t Byte() { return static_cast<uint8_t>(bytes_.at(at_++)); }
  std::vector<uint64_t> Packed(size_t count, int bit_width) {
    std::vector<uint64_t> values(count);
    for (size_t bit = 0; bit < count * static_cast<size_t>(bit_width); ++bit) {
      if (bit % 8 == 0) byte_ = Byte();
      const uint64_t is_set = byte_ >> bit % 8 & 1;
      values[bit / static_cast<size_t>(bit_width)] |= is_set
                                                      << bit % static_cast<size_t>(bit_width);
    }
    return values;
  }
  bool is_at_end() const { return at_ == bytes_.size(); }

 private:
  const std::string bytes_;
  size_t at_ = 0;
  uint8_t byte_ = 0;
};

std::vector<uint32_t> DecodeRuns(const std::string& bytes, size_t count, int bit_width) {
  Decoder decoder(bytes);
  std::vector<uint32_t> values;
  while (!decoder.is_at_end()) {
    const uint64_t header = decoder.Varint();
    if ((header & 1) != 0) {
      for (const uint64_t value : decoder.Packed((header >> 1) * 8, bit_width)) {
        values.push_back(static_cast<uint32_t>(value));
      }
      continue;
    }
    uint32_t value = 0;
    for (int shift = 0; shift < bit_width; shift += 8) value |= uint32_t{decoder.Byte()} << shift;
    values.insert(values.end(), header >> 1, value);
  }
  EXPECT_LT(values.size(), count + 8);  // only the last group is filled up
  values.resize(count);
  return values;
}

std::vector<int64_t> DecodeDeltas(const std::string& bytes) {
  Decoder decoder(bytes);
  const uint64_t block = decoder.Varint();
  const uint64_t mini_blocks = decoder.Varint();
  const uint64_t count = decoder.Varint();
  auto value = static_cast<uint64_t>(decoder.Zigzag());
  std::vector<int64_t> values;
  if (count > 0) values.push_back(static_cast<int64_t>(value));
  while (values.size() < count) {
    const auto least = static_cast<uint64_t>(decoder.Zigzag());
    std::vector<int> widths;
    for (uint64_t i = 0; i < mini_blocks; ++i) widths.push_back(decoder.Byte());
    for (const int width : widths) {
      if (values.size() >= count) break;
      for (const uint64_t delta : decoder.Packed(block / mini_blocks, width)) {
        value += least + delta;
        if (values.size() < count) values.push_back(static_cast<int64_t>(value));
      }
    }
  }
  EXPECT_TRUE(decoder.is_at_end());
  return values;
}

TEST(ParquetEncodingTest, RunsAndPackedGroupsReadBack) {
  for (const size_t size : {0, 1, 7, 8, 9, 63, 1000}) {
    for (const uint32_t period : {1, 2, 3, 7, 8, 20, 500}) {
      std::vector<uint32_t> values;
      for (size_t i = 0; i < size; ++i) {
        // Runs of each length, between values that change.
        values.push_back(i / 50 % 2 == 0 ? static_cast<uint32_t>(i % period) : period / 2);
      }
      const int width = BitWidth(period - 1);
      std::string bytes;
      AppendRuns(bytes, values, width);
      EXPECT_EQ(DecodeRuns(bytes, size, width), values) << size << ' ' << period;
    }
  }
}

TEST(ParquetEncodingTest, WideValuesReadBack) {
  const std::vector<uint32_t> values = {0, 0xffffffff, 1, 0x80000000, 0xffffffff, 0, 0, 5, 6};
  std::string bytes;
  AppendRuns(bytes, values, 32);
  EXPECT_EQ(DecodeRuns(bytes, values.size(), 32), values);
}

TEST(ParquetEncodingTest, DifferencesOfAnySizeReadBack) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const size_t size : {0, 1, 2, 32, 33, 128, 129, 130, 1000}) {
    std::vector<int64_t> ascending;
    std::vector<int64_t> extreme;
    for (size_t i = 0; i < size; ++i) {
      ascending.push_back(1'000'000'000'000 + static_cast<int64_t>(i * 1000 + i * i % 77));
      extreme.push_back(i % 3 == 0 ? kLeast : i % 3 == 1 ? kMost : static_cast<int64_t>(i));
    }
    for (const std::vector<int64_t>& values : {ascending, extreme}) {
      std::string bytes;
      AppendDeltas(bytes, values);
      EXPECT_EQ(DecodeDeltas(bytes), values) << size;
    }
  }
}

}  // namespace
}  // namespace xpu
