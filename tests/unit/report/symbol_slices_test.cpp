#include <gtest/gtest.h>

#include "report/stacks/stack_names.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

class SymbolSlicesTest : public testing::Test {
 protected:
  SymbolSlicesTest() { builder_.Text("[lost]"); }  // has the id that captures keep for it
  void Part(const char* path, const char* build_id, uint32_t part, uint32_t count,
            std::string_view bytes) {
    SymbolSlice slice;
    slice.path = builder_.Text(path);
    slice.build_id = builder_.Text(build_id);
    slice.detail = SymbolDetail::kNames;
    slice.part = part;
    slice.part_count = count;
    slice.bytes = bytes.empty() ? StringId{} : builder_.Text(bytes);
    builder_.events.symbol_slices.push_back(slice);
  }
  // "path bytes" of each, and the number of incomplete ones.
  std::vector<std::string> Collect() {
    model_ = builder_.Build();
    const SliceCollection collection = CollectSlices(model_);
    std::vector<std::string> texts;
    for (const AssembledSlice& slice : collection.slices) {
      texts.push_back(std::string(slice.path) + " " + slice.Bytes());
    }
    texts.push_back(std::to_string(collection.incomplete));
    return texts;
  }
  using Expected = std::vector<std::string>;

  test::ModelBuilder builder_;
  Model model_;
};

TEST_F(SymbolSlicesTest, PartsInOrder) {
  Part("/a", "1", 0, 3, "xx");
  Part("/b", "1", 0, 1, "b");
  Part("/a", "1", 1, 3, "yy");
  Part("/a", "2", 0, 1, "other build");
  Part("/a", "1", 2, 3, "z");
  EXPECT_EQ(Collect(), (Expected{"/a xxyyz", "/a other build", "/b b", "0"}));
}

TEST_F(SymbolSlicesTest, TheLastWholeOneCounts) {
  Part("/a", "1", 0, 1, "old");
  Part("/a", "1", 0, 1, "new");
  Part("/a", "1", 0, 2, "cut");
  EXPECT_EQ(Collect(), (Expected{"/a new", "0"}));
}

TEST_F(SymbolSlicesTest, OlderOnesAreKeptInOrder) {
  for (const char* bytes : {"one", "two", "three"}) Part("/a", "1", 0, 1, bytes);
  model_ = builder_.Build();
  const SliceCollection collection = CollectSlices(model_);
  ASSERT_EQ(collection.slices.size(), 1u);
  const AssembledSlice& slice = collection.slices[0];
  EXPECT_EQ(slice.Bytes(), "three");
  ASSERT_EQ(slice.older.size(), 2u);
  EXPECT_EQ(slice.older[0].at(0), "one");
  EXPECT_EQ(slice.older[1].at(0), "two");
  EXPECT_EQ(slice.size_bytes(), 11u);
}

TEST_F(SymbolSlicesTest, WhatLacksPartsIsCountedOnce) {
  Part("/missing-first", "1", 1, 2, "x");
  Part("/missing-last", "1", 0, 2, "x");
  Part("/out-of-order", "1", 0, 3, "x");
  Part("/out-of-order", "1", 2, 3, "x");
  Part("/out-of-order", "1", 1, 3, "x");
  Part("/other-count", "1", 0, 2, "x");
  Part("/other-count", "1", 1, 3, "x");
  Part("/none", "1", 0, 0, "x");
  Part("/empty", "1", 0, 1, "");
  Part("/twice", "1", 0, 2, "x");
  Part("/twice", "1", 0, 2, "y");
  Part("/twice", "1", 1, 2, "z");
  EXPECT_EQ(Collect(), (Expected{"/twice yz", "6"}));
}

TEST_F(SymbolSlicesTest, NoMoreThan64MiB) {
  const std::string megabyte(1 << 20, 'x');
  for (uint32_t part = 0; part < 65; ++part) Part("/large", "1", part, 65, megabyte);
  for (uint32_t part = 0; part < 64; ++part) Part("/fits", "1", part, 64, megabyte);
  const Expected found = Collect();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].size(), 6u + (64u << 20));
  EXPECT_EQ(found[1], "1");
}

}  // namespace
}  // namespace xpu
