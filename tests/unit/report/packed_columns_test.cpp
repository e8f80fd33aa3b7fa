#include "report/base/packed_columns.h"

#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

namespace xpu {
namespace {

using Columns = PackedColumns<11>;

// In groups of any length: one of equal numbers, of those that take 1 to 8 bytes above a large one,
// one that falls, and one of the least and the largest number.
Columns::Row RowAt(uint64_t i) {
  Columns::Row row{};
  row[0] = 42;
  for (uint64_t bytes = 1; bytes <= 8; ++bytes) {
    const uint64_t most = ~uint64_t{0} >> (8 - bytes) * 8;
    const uint64_t least = bytes == 8 ? 0 : 1'000'000'000'000'000'000;
    row[bytes] = least + (i % 5 == 0 ? most : i % 251 & most);
  }
  row[9] = 1'000'000 - i;
  row[10] = i % 3 == 0 ? ~uint64_t{0} : 0;
  return row;
}

Columns Filled(uint64_t rows) {
  Columns columns;
  for (uint64_t i = 0; i < rows; ++i) columns.push_back(RowAt(i));
  return columns;
}

TEST(PackedColumns, KeepEachNumberOfEachWidth) {
  for (const uint64_t rows : {0, 1, 255, 256, 257, 511, 512, 513, 100'000}) {
    const Columns columns = Filled(rows);
    ASSERT_EQ(columns.size(), rows);
    for (uint64_t i = 0; i < rows; ++i) {
      ASSERT_EQ(columns[i], RowAt(i)) << i << " of " << rows;
      ASSERT_EQ(columns.Get(9, i), 1'000'000 - i);
    }
  }
}

TEST(PackedColumns, AreEmptyAfterAMove) {
  Columns first = Filled(300);
  Columns second = std::move(first);
  EXPECT_EQ(second[299], RowAt(299));
  EXPECT_EQ(first.size(), 0u);  // NOLINT: what a move leaves is a part of the contract
  first.push_back(RowAt(7));
  EXPECT_EQ(first[0], RowAt(7));
  second.push_back(RowAt(300));
  EXPECT_EQ(second[299], RowAt(299));
  EXPECT_EQ(second[300], RowAt(300));
  second = std::move(first);
  EXPECT_EQ(first.size(), 0u);  // NOLINT
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0], RowAt(7));
  second.push_back(RowAt(1));
  EXPECT_EQ(second[1], RowAt(1));
}

}  // namespace
}  // namespace xpu
