#include "report/workload/recurrence.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace xpu {
namespace {

// A program as text: each letter is a launch, in order of time.
class RecurrenceTest : public testing::Test {
 protected:
  RecurrenceTest() : paths_(256) {}

  // The call that the letter stands for, at `place` of a function that `callers` have called.
  void Site(char letter, std::vector<uint32_t> callers, uint64_t place) {
    SitePath& path = paths_[static_cast<unsigned char>(letter)];
    path.places.assign(callers.size(), 1);
    path.callers = std::move(callers);
    path.callers.push_back(1'000 + static_cast<unsigned char>(letter));
    path.places.push_back(place);
  }
  // In main's loop, in the order of the alphabet.
  void SitesOfOneFunction(std::string_view letters) {
    for (const char letter : letters) Site(letter, {1}, static_cast<uint64_t>(letter));
  }

  // "begin+launches begin+launches ..."
  std::string Rounds(std::string_view program, std::string_view moves_data = "") {
    std::vector<SiteVisit> visits;
    for (const char letter : program) {
      visits.push_back({static_cast<unsigned char>(letter), visits.size() * 1'000,
                        moves_data.find(letter) != std::string_view::npos});
    }
    found_ = FindRecurrence(visits, paths_);
    std::string text;
    if (!found_) return "none";
    for (const Recurrence::Round& round : found_->rounds) {
      text += std::to_string(round.begin) + "+" + std::to_string(round.end - round.begin) + " ";
    }
    return text;
  }
  size_t Count(std::string_view program, std::string_view moves_data = "") {
    Rounds(program, moves_data);
    return found_ ? found_->rounds.size() : 0;
  }
  static std::string Times(size_t times, std::string_view text) {
    std::string all;
    for (size_t i = 0; i < times; ++i) all += text;
    return all;
  }

  std::vector<SitePath> paths_;
  std::optional<Recurrence> found_;
};

TEST_F(RecurrenceTest, ALoopHasItsRoundsAndItsBorders) {
  SitesOfOneFunction("abcxyz");
  EXPECT_EQ(Rounds("xyz" + Times(5, "abc") + "zz"), "3+3 6+3 9+3 12+3 15+3 ");
  EXPECT_EQ(found_->launches, 3u);
  EXPECT_EQ(found_->regular, 5u);
  EXPECT_TRUE(found_->begins_by_code);
}

// A recording that begins in a round, and ends in one.
TEST_F(RecurrenceTest, TheCodeSaysWhereARoundBegins) {
  SitesOfOneFunction("abc");
  EXPECT_EQ(Rounds("c" + Times(6, "abc") + "a"), "0+1 1+3 4+3 7+3 10+3 13+3 16+3 19+1 ");
}

TEST_F(RecurrenceTest, WithoutStacksTheFirstLaunchesSayIt) {
  EXPECT_EQ(Rounds("xy" + Times(6, "abc")), "2+3 5+3 8+3 11+3 14+3 17+3 ");
  EXPECT_FALSE(found_->begins_by_code);
}

TEST_F(RecurrenceTest, LayersAreNoSteps) {
  Site('i', {1}, 1);
  Site('q', {1, 2}, 1);
  Site('k', {1, 2}, 2);
  Site('o', {1}, 3);
  const std::string step = "i" + Times(12, "qk") + "o";
  EXPECT_EQ(Count(Times(20, step)), 20u);
  EXPECT_EQ(found_->launches, 26u);
  EXPECT_EQ(found_->regular, 20u);
  // A few rounds of an outer loop are epochs, whose steps are looked for.
  EXPECT_EQ(Count(Times(5, Times(40, "qk") + "o")), 200u);
}

TEST_F(RecurrenceTest, WhatMovesDataIsAStep) {
  Site('h', {1, 2}, 1);
  Site('k', {1, 2}, 2);
  Site('e', {1}, 3);  // once in an epoch
  EXPECT_EQ(Count(Times(20, Times(30, "hk") + "e"), "h"), 600u);
}

// Every tenth round logs something.
TEST_F(RecurrenceTest, ALaunchNowAndThenIsInItsRound) {
  SitesOfOneFunction("abcl");
  EXPECT_EQ(Count(Times(20, Times(9, "abc") + "abcl")), 200u);
  EXPECT_EQ(found_->launches, 3u);
  EXPECT_EQ(found_->regular, 180u);
  EXPECT_EQ(found_->rounds[9].end - found_->rounds[9].begin, 4u);
}

TEST_F(RecurrenceTest, LoadingWeightsIsNoStep) {
  Site('w', {1, 3}, 1);
  Site('a', {1}, 2);
  Site('b', {1}, 3);
  EXPECT_EQ(Count(Times(50, "w") + Times(100, "ab"), "w"), 100u);
}

TEST_F(RecurrenceTest, AFirstRoundThatIsUnlikeTheOthersCounts) {
  SitesOfOneFunction("abcd");
  // "i" comes before the loop; "a" does nothing the first time.
  Site('i', {1}, 1);
  EXPECT_EQ(Rounds("ii"
                   "bcd" +
                   Times(5, "abcd")),
            "2+3 5+4 9+4 13+4 17+4 21+4 ");
}

TEST_F(RecurrenceTest, WhatIsBetweenTwoLoopsIsInNone) {
  SitesOfOneFunction("abcd");
  Site('v', {1, 7}, 1);
  const std::string loop = Times(10, "abcd");
  EXPECT_EQ(Count(loop + Times(30, "v") + loop), 20u);
  EXPECT_EQ(found_->rounds[9].end, 40u);
  EXPECT_EQ(found_->rounds[10].begin, 70u);
}

TEST_F(RecurrenceTest, WhatDoesNotRecurHasNoRounds) {
  EXPECT_EQ(Rounds(""), "none");
  EXPECT_EQ(Rounds("abcdefgh"), "none");
  EXPECT_EQ(Rounds("ababab"), "none");
}

}  // namespace
}  // namespace xpu
