#include "report/model/labels.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "format/base/quote.h"

namespace xpu {
namespace {

using Words = std::vector<std::string>;

TEST(Words, AreThoseThatWereQuoted) {
  const Words words = {"-o", "a b.xpu", "", "it's", "$HOME", "back\\slash", "'", "--x=1"};
  EXPECT_EQ(WordsOfShell(QuoteForShell(words)), words);
  EXPECT_EQ(WordsOfShell(""), Words());
  EXPECT_EQ(WordsOfShell("  a  b "), (Words{"a", "b"}));
  EXPECT_EQ(WordsOfShell("'not closed"), Words{"not closed"});
  EXPECT_EQ(WordsOfShell("end\\"), Words{"end\\"});
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs PairsOf(const Words& arguments) {
  Pairs pairs;
  for (const auto& [key, value] : LabelsOf(QuoteForShell(arguments)))
    pairs.emplace_back(key, value);
  return pairs;
}

TEST(Labels, AreInTheArgumentsOfTheRecorder) {
  EXPECT_EQ(PairsOf({"--label", "commit=1a2b", "-F", "99", "--label=note=it's a=b", "-q"}),
            (Pairs{{"commit", "1a2b"}, {"note", "it's a=b"}}));
  EXPECT_EQ(PairsOf({"-F", "99"}), Pairs());
}

TEST(Labels, OfDamagedArgumentsAreLeftOut) {
  EXPECT_EQ(PairsOf({"--label", "=1", "--label=none", "--labels=a=b", "--label"}), Pairs());
}

}  // namespace
}  // namespace xpu
