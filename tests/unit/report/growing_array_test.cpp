#include "report/base/growing_array.h"

#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

namespace xpu {
namespace {

struct Entry {
  uint64_t number;
  uint32_t half;
};

// Past the size from which on it asks for huge pages.
constexpr uint64_t kMany = 2 * kManyHugePagesBytes / sizeof(Entry);

GrowingArray<Entry> Filled(uint64_t count) {
  GrowingArray<Entry> rows;
  for (uint64_t i = 0; i < count; ++i) rows.push_back({i, static_cast<uint32_t>(i / 2)});
  return rows;
}

TEST(GrowingArray, KeepsWhatItHasWhileItGrows) {
  const GrowingArray<Entry> rows = Filled(kMany);
  ASSERT_EQ(rows.size(), kMany);
  for (uint64_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(rows[i].number, i);
    ASSERT_EQ(rows[i].half, i / 2);
  }
}

TEST(GrowingArray, TakesAnElementOfItsOwn) {
  GrowingArray<Entry> rows = Filled(1);
  for (uint64_t i = 1; i < 100'000; ++i) rows.push_back(rows[i - 1]);
  EXPECT_EQ(rows[99'999].number, 0u);
}

TEST(GrowingArray, IsEmptyAfterAMove) {
  GrowingArray<Entry> first = Filled(3);
  GrowingArray<Entry> second = std::move(first);
  EXPECT_EQ(second.size(), 3u);
  EXPECT_TRUE(first.empty());  // NOLINT: what a move leaves is a part of the contract
  first.push_back({7, 0});
  EXPECT_EQ(first[0].number, 7u);
  first = std::move(second);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first.end() - first.begin(), 3);
  EXPECT_EQ(first[2].number, 2u);
}

}  // namespace
}  // namespace xpu
