#include <gtest/gtest.h>

#include "report/model/process_history.h"

namespace xpu {
namespace {

class AddressSpaceTest : public testing::Test {
 protected:
  // Adds a mapping [start, start + size) at `time` to `space`; the index names it.
  uint32_t Map(SpaceId space, uint64_t time, uint64_t start, uint64_t size) {
    Mapping& mapping = mappings_.emplace_back();
    mapping.time_ns = time;
    mapping.start_address = start;
    mapping.size_bytes = size;
    const auto index = static_cast<uint32_t>(mappings_.size() - 1);
    spaces_.Map(space, index);
    return index;
  }
  // -1: none.
  int At(SpaceId space, uint64_t address, uint64_t time) {
    const Mapping* found = spaces_.Find(space, address, time).mapping;
    return found == nullptr ? -1 : static_cast<int>(found - mappings_.data());
  }
  bool AtAnyTime(SpaceId space, uint64_t address, uint64_t time) {
    return spaces_.Find(space, address, time).at_any_time;
  }

  std::vector<Mapping> mappings_;
  AddressSpaces spaces_{mappings_};
};

TEST_F(AddressSpaceTest, RangesAndGaps) {
  const SpaceId space = spaces_.Create({}, 0);
  Map(space, 1, 0x1000, 0x1000);
  Map(space, 2, 0x4000, 0x1000);
  spaces_.Finish();
  EXPECT_EQ(At(space, 0xfff, 9), -1);
  EXPECT_EQ(At(space, 0x1000, 9), 0);
  EXPECT_EQ(At(space, 0x1fff, 9), 0);
  EXPECT_EQ(At(space, 0x2000, 9), -1);
  EXPECT_EQ(At(space, 0x4800, 9), 1);
  EXPECT_TRUE(AtAnyTime(space, 0x1800, 9));
  EXPECT_TRUE(AtAnyTime(space, 0x2000, 9));
}

TEST_F(AddressSpaceTest, ANewMappingCoversAnOldOneFromItsTime) {
  const SpaceId space = spaces_.Create({}, 0);
  Map(space, 10, 0x1000, 0x3000);
  Map(space, 20, 0x2000, 0x1000);
  spaces_.Finish();
  EXPECT_EQ(At(space, 0x2800, 19), 0);
  EXPECT_EQ(At(space, 0x2800, 20), 1);
  EXPECT_EQ(At(space, 0x3800, 20), 0);
  EXPECT_FALSE(AtAnyTime(space, 0x2800, 20));
  EXPECT_TRUE(AtAnyTime(space, 0x3800, 20));
}

TEST_F(AddressSpaceTest, BeforeAllMappingsTheEarliestCounts) {
  const SpaceId space = spaces_.Create({}, 0);
  Map(space, 10, 0x1000, 0x1000);
  Map(space, 20, 0x1000, 0x1000);
  spaces_.Finish();
  EXPECT_EQ(At(space, 0x1800, 5), 0);
}

TEST_F(AddressSpaceTest, ACopyHasWhatItsParentHadThen) {
  const SpaceId parent = spaces_.Create({}, 0);
  Map(parent, 10, 0x1000, 0x1000);
  const SpaceId child = spaces_.Create(parent, 15);
  Map(parent, 20, 0x1000, 0x1000);
  Map(child, 30, 0x1000, 0x1000);
  Map(child, 30, 0x8000, 0x1000);
  spaces_.Finish();
  EXPECT_EQ(At(parent, 0x1800, 25), 1);
  EXPECT_EQ(At(child, 0x1800, 25), 0);
  EXPECT_EQ(At(child, 0x1800, 30), 2);
  EXPECT_EQ(At(child, 0x8800, 30), 3);
  EXPECT_FALSE(AtAnyTime(child, 0x1800, 25));
  EXPECT_FALSE(AtAnyTime(child, 0x1800, 30));
}

TEST_F(AddressSpaceTest, RangesAtTheEndOfAddresses) {
  const SpaceId space = spaces_.Create({}, 0);
  Map(space, 1, ~uint64_t{0} - 0xfff, 0x2000);
  spaces_.Finish();
  EXPECT_EQ(At(space, ~uint64_t{0} - 1, 1), 0);
}

}  // namespace
}  // namespace xpu
