#include "cupti_inject/walk_cache.h"

#include <vector>

#include <gtest/gtest.h>

namespace xpu::inject {
namespace {

constexpr uint64_t kSp = 0x7ffc12345678;

UnwindRule RuleOf(uint64_t address) {
  return {UnwindCfa::kRsp, UnwindRbp::kSame, 0, static_cast<int32_t>(address % 1000)};
}

class WalkCacheTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(guides_.Open()); }
  void TearDown() override { guides_.Close(); }

  struct Walked {
    uint32_t found = 0;  // steps that a guide knew
    uint32_t stack = 0;  // the number that it knew
  };

  // As a walk does it; an address of 0 has no rule. Sets `stack` where none is known.
  Walked Walk(const std::vector<uint64_t>& addresses, uint32_t stack, uint64_t how = 1,
              uint64_t generation = 1) {
    Walked walked;
    WalkCache::Use use(guides_, kSp, generation);
    for (const uint64_t address : addresses) {
      UnwindRule rule;
      if (use.Find(address, &rule)) {
        EXPECT_EQ(rule, RuleOf(address));
        ++walked.found;
      } else if (address == 0) {
        use.AddOther();
      } else {
        use.Add(address, RuleOf(address));
      }
    }
    walked.stack = use.StackOf(how);
    if (walked.stack == 0) use.SetStack(how, stack);
    return walked;
  }

  WalkCache guides_;
};

TEST_F(WalkCacheTest, SecondWalkIsKnown) {
  EXPECT_EQ(Walk({11, 12, 13}, 7).found, 0u);
  const Walked again = Walk({11, 12, 13}, 8);
  EXPECT_EQ(again.found, 3u);
  EXPECT_EQ(again.stack, 7u);
}

TEST_F(WalkCacheTest, NumberIsOfTheWholeWalkAndItsEnd) {
  Walk({11, 12, 13}, 7);
  EXPECT_EQ(Walk({11, 12}, 8).stack, 0u);
  EXPECT_EQ(Walk({11, 12, 13, 14}, 9).stack, 0u);
  EXPECT_EQ(Walk({11, 12, 13}, 10, /*how=*/2).stack, 0u);
  EXPECT_EQ(Walk({11, 12, 13, 14}, 11).stack, 9u);
}

TEST_F(WalkCacheTest, WalksThatPartAndMeetAgain) {
  const std::vector<uint64_t> first = {11, 12, 13, 14}, second = {11, 22, 13, 14},
                              third = {11, 12, 33, 14};
  Walk(first, 1);
  EXPECT_EQ(Walk(second, 2).found, 3u);
  EXPECT_EQ(Walk(third, 3).found, 3u);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(Walk(first, 4).stack, 1u);
    EXPECT_EQ(Walk(second, 4).stack, 2u);
    EXPECT_EQ(Walk(third, 4).stack, 3u);
  }
  // All of its steps are known, of two other walks: it is none of them.
  const Walked mixed = Walk({11, 22, 33, 14}, 5);
  EXPECT_EQ(mixed.found, 4u);
  EXPECT_EQ(mixed.stack, 0u);
  EXPECT_EQ(Walk({11, 22, 33, 14}, 6).stack, 5u);
}

TEST_F(WalkCacheTest, MoreWalksThanEntries) {
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint32_t walk = 1; walk <= 3 * WalkCache::kWalksPerSet; ++walk) {
      const uint32_t known = Walk({11, 100 + walk, 13}, walk).stack;
      EXPECT_TRUE(known == 0 || known == walk);
    }
  }
}

TEST_F(WalkCacheTest, AnotherGenerationKnowsNothing) {
  Walk({11, 12}, 7);
  EXPECT_EQ(Walk({11, 12}, 8, 1, /*generation=*/2).found, 0u);
  EXPECT_EQ(Walk({11, 12}, 9, 1, /*generation=*/2).stack, 8u);
}

TEST_F(WalkCacheTest, FramesWithoutARuleHaveNoNumber) {
  EXPECT_EQ(Walk({11, 0, 13}, 7).found, 0u);
  const Walked again = Walk({11, 0, 13}, 8);
  EXPECT_EQ(again.found, 2u);
  EXPECT_EQ(again.stack, 0u);
}

TEST_F(WalkCacheTest, DeepWalksAreKnownAsFarAsThereIsRoom) {
  std::vector<uint64_t> deep;
  for (uint64_t i = 0; i < WalkCache::kMaxSteps; ++i) deep.push_back(1000 + i);
  Walk(deep, 7);
  EXPECT_EQ(Walk(deep, 8).stack, 7u);
  deep.push_back(1);
  EXPECT_EQ(Walk(deep, 9).found, WalkCache::kMaxSteps);
  EXPECT_EQ(Walk(deep, 10).stack, 0u);
}

// In a signal handler, or on another thread.
TEST_F(WalkCacheTest, WalkInsideAWalkIsNotCached) {
  Walk({11, 12}, 7);
  WalkCache::Use outer(guides_, kSp, 1);
  UnwindRule rule;
  EXPECT_TRUE(outer.Find(11, &rule));
  const Walked inner = Walk({11, 12}, 8);
  EXPECT_EQ(inner.found, 0u);
  EXPECT_EQ(inner.stack, 0u);
  EXPECT_TRUE(outer.Find(12, &rule));
  EXPECT_EQ(outer.StackOf(1), 7u);
}

}  // namespace
}  // namespace xpu::inject
