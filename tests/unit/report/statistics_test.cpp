#include "report/statistics.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

TEST(Summarize, OfSeveralValues) {
  std::vector<uint64_t> values = {4, 2, 9, 5};
  const Statistics row = Summarize("x", values);
  EXPECT_EQ(row.count, 4u);
  EXPECT_EQ(row.total, 20u);
  EXPECT_EQ(row.smallest, 2u);
  EXPECT_EQ(row.largest, 9u);
  EXPECT_DOUBLE_EQ(row.average, 5.0);
  EXPECT_DOUBLE_EQ(row.median, 4.5);
  EXPECT_NEAR(row.deviation, 2.943920, 1e-6);  // sqrt(26 / 3)
}

TEST(Summarize, OfOneAndOfNone) {
  std::vector<uint64_t> one = {7};
  EXPECT_DOUBLE_EQ(Summarize("x", one).median, 7.0);
  EXPECT_DOUBLE_EQ(Summarize("x", one).deviation, 0.0);
  std::vector<uint64_t> none;
  EXPECT_EQ(Summarize("x", none).count, 0u);
}

TEST(FunctionTimes, SelfAndTotalAndRecursion) {
  FrameTable frames;
  CallTree tree;
  const FrameId comm = frames.Intern("comm");
  const FrameId f = frames.Intern("f");
  const FrameId g = frames.Intern("g");
  PathId path = tree.Child(tree.Child({}, comm), f);
  tree.Add(path, 10);  // f
  path = tree.Child(path, g);
  tree.Add(path, 20);  // f > g
  path = tree.Child(path, f);
  tree.Add(path, 5);  // f > g > f: f counts once
  const std::vector<FunctionTime> rows = FunctionTimes(tree, frames);
  ASSERT_EQ(rows.size(), 2u);  // the name of the thread is no function
  EXPECT_EQ(rows[0].frame, g);
  EXPECT_EQ(rows[0].self_ns, 20u);
  EXPECT_EQ(rows[0].total_ns, 25u);
  EXPECT_EQ(rows[1].frame, f);
  EXPECT_EQ(rows[1].self_ns, 15u);
  EXPECT_EQ(rows[1].self_count, 2u);
  EXPECT_EQ(rows[1].total_ns, 35u);
  EXPECT_EQ(rows[1].total_count, 3u);
}

TEST(PathTimes, MostFirst) {
  FrameTable frames;
  CallTree tree;
  const PathId a = tree.Child({}, frames.Intern("a"));
  const PathId b = tree.Child(a, frames.Intern("b"));
  const PathId c = tree.Child(a, frames.Intern("c"));
  tree.Add(b, 5);
  tree.Add(c, 9);
  const std::vector<PathTime> rows = PathTimes(tree);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].path, c);
  EXPECT_EQ(rows[1].ns, 5u);
}

}  // namespace
}  // namespace xpu
