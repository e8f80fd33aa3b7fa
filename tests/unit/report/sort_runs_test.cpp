#include "report/base/sort_runs.h"

#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace xpu {
namespace {

// A list of `runs` parts in order, of `length` each. Beside each key, its place.
std::vector<std::pair<unsigned, size_t>> Runs(size_t runs, size_t length) {
  std::mt19937 random(static_cast<unsigned>(runs * 1000 + length));
  std::vector<std::pair<unsigned, size_t>> list;
  for (size_t run = 0; run < runs; ++run) {
    unsigned key = random() % 50;
    for (size_t i = 0; i < length; ++i) {
      list.emplace_back(key, list.size());
      key += random() % 3;
    }
  }
  return list;
}

TEST(SortRunsTest, SortsAnyNumberOfPartsAndKeepsTheOrderOfEqualOnes) {
  for (const size_t runs : {0, 1, 2, 3, 4, 5, 17, 255, 256, 257, 300, 1000}) {
    for (const size_t length : {1, 2, 50}) {
      std::vector<std::pair<unsigned, size_t>> list = Runs(runs, length);
      std::vector<std::pair<unsigned, size_t>> expected = list;
      std::sort(expected.begin(), expected.end());
      SortRuns(list, [](const auto& a, const auto& b) { return a.first < b.first; });
      EXPECT_EQ(list, expected) << runs << " of " << length;
    }
  }
}

}  // namespace
}  // namespace xpu
