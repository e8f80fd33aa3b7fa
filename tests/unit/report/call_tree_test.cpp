#include "report/analysis/call_tree.h"

#include <limits>

#include <gtest/gtest.h>

#include "format/base/saturated.h"

namespace xpu {
namespace {

TEST(CallTree, EqualPathsAreOneNode) {
  FrameTable frames;
  CallTreeLimit limit;
  CallTree tree(limit);
  const FrameId a = frames.Intern("a");
  const FrameId b = frames.Intern("b");
  const PathId root = tree.Child({}, a);
  EXPECT_EQ(tree.Child({}, a), root);
  const PathId leaf = tree.Child(root, b);
  EXPECT_NE(tree.Child({}, b), leaf);
  EXPECT_EQ(tree.Path(leaf), (std::vector<FrameId>{a, b}));
  tree.Add(leaf, 5);
  tree.Add(leaf, 7, 2);
  EXPECT_EQ(tree[leaf].self_ns, 12u);
  EXPECT_EQ(tree[leaf].self_count, 3u);
  EXPECT_EQ(tree[root].self_ns, 0u);
}

TEST(CallTree, AFullOneKeepsTheTime) {
  FrameTable frames;
  CallTreeLimit limit;
  limit.max_nodes = 2;
  CallTree tree(limit);
  const FrameId a = frames.Intern("a");
  const FrameId b = frames.Intern("b");
  const PathId root = tree.Child({}, a);
  const PathId leaf = tree.Child(root, b);
  EXPECT_EQ(tree.Child(leaf, a), leaf);
  EXPECT_EQ(tree.Child(root, a), root);
  EXPECT_EQ(tree.Child({}, b), root);
  EXPECT_EQ(tree.Child(root, b), leaf);
  EXPECT_EQ(tree.nodes().size(), 2u);
  EXPECT_EQ(limit.frames_left_out, 3u);
}

TEST(CallTree, SumsDoNotWrap) {
  EXPECT_EQ(AddSaturated(2, 3), 5u);
  EXPECT_EQ(AddSaturated(std::numeric_limits<uint64_t>::max(), 1),
            std::numeric_limits<uint64_t>::max());
}

TEST(FrameTable, NameModuleAndOriginTellFramesApart) {
  FrameTable frames;
  const FrameId first = frames.Intern({.name = "f", .module = "a.so"});
  EXPECT_EQ(frames.Intern({.name = "f", .module = "a.so"}), first);
  EXPECT_NE(frames.Intern({.name = "f", .module = "b.so"}), first);
  EXPECT_NE(frames.Intern({.origin = FrameOrigin::kKernel, .name = "f", .module = "a.so"}), first);
  EXPECT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[first].module, "a.so");
}

}  // namespace
}  // namespace xpu
