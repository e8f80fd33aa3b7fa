// The tables were made by CPython of this function, as a part of a module:
//
//    2  def f(a,
//    3        b):
//    4      try:
//    5          return g(
//    6              a,
//    7              b
//    8          )
//    9      finally:
//   10          for x in a:
//   11              print(x)
#include <cstdint>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "report/stacks/python_frames.h"

namespace xpu {
namespace {

constexpr int64_t kFirstLine = 2;

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// What code.co_positions() says, "-" for None.
std::string LinesOf(const PythonLines& lines, size_t units) {
  std::ostringstream text;
  for (uint32_t unit = 0; unit < units; ++unit) {
    const std::optional<int64_t> line = lines.At(2 * unit);
    EXPECT_EQ(lines.At(2 * unit + 1), line);
    text << (unit == 0 ? "" : " ");
    if (line) {
      text << *line + kFirstLine;
    } else {
      text << "-";
    }
  }
  return text.str();
}

TEST(PythonLines, AsPython311Says) {
  const PythonLines lines(FromHex(
      "8000f004070515dd0f10d80c0dd80c0df10503100af40003100af00a001213f000010915f0000109158841dd0c"
      "11902189488c4888488848f003010915f89011f000010915f0000109158841dd0c11902189488c4888488848f0"
      "03010915f8f8f8"));
  EXPECT_TRUE(lines.has_lines());
  EXPECT_EQ(LinesOf(lines, 63),
            "2 4 5 5 5 5 5 5 6 7 5 5 5 5 5 5 5 10 10 10 10 11 11 11 11 11 11 11 11 11 11 11 11 "
            "11 11 11 11 10 - 10 10 10 10 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 10 - - "
            "-");
}

TEST(PythonLines, AsPython313Says) {
  const PythonLines lines(FromHex(
      "8000f004070515dc0f10d80c0dd80c0df30503100af30a0012138841dc0c1190218e48f203001213f893118841"
      "dc0c1190218e48f203001213fa"));
  EXPECT_EQ(LinesOf(lines, 59),
            "2 4 5 5 5 5 5 6 7 5 5 5 5 10 10 10 10 10 11 11 11 11 11 11 11 11 11 11 11 11 11 10 10 "
            "10 - 10 10 10 10 10 11 11 11 11 11 11 11 11 11 11 11 11 11 10 10 10 - - -");
}

TEST(PythonLines, AfterTheEndThereIsNoLine) {
  const PythonLines lines(FromHex("8000"));  // one unit
  EXPECT_EQ(lines.At(0), 0);
  EXPECT_EQ(lines.At(1), 0);
  EXPECT_EQ(lines.At(2), std::nullopt);
  EXPECT_EQ(lines.At(~uint32_t{0}), std::nullopt);
}

TEST(PythonLines, TablesWithoutLines) {
  EXPECT_FALSE(PythonLines("").has_lines());
  const PythonLines none("\xfb\xf8");
  EXPECT_FALSE(none.has_lines());
  EXPECT_EQ(none.At(0), std::nullopt);
}

// No columns, line +70, 2 units; one line, +2, 1 unit; short, 8 units; long, -3; none; no columns.
TEST(PythonLines, EveryKindOfEntry) {
  const PythonLines lines(FromHex("e94c02e005099f42f00701640102f8e800"));
  EXPECT_EQ(LinesOf(lines, 14), "72 72 74 74 74 74 74 74 74 74 74 71 - 71");
}

// Of a damaged table what comes before counts.
TEST(PythonLines, DamagedTables) {
  const std::string whole = FromHex(
      "8000f004070515dc0f10d80c0dd80c0df30503100af30a0012138841dc0c1190218e48f203001213f893118841"
      "dc0c1190218e48f203001213fa");
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    const PythonLines lines(whole.substr(0, cut));
    EXPECT_EQ(lines.has_lines(), cut >= 2);
    EXPECT_EQ(lines.At(0), cut >= 2 ? std::optional<int64_t>(0) : std::nullopt);
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      (void)PythonLines(flipped).At(20);
    }
  }
  EXPECT_EQ(PythonLines(FromHex("800000")).At(2), std::nullopt);              // no begin
  EXPECT_EQ(PythonLines(FromHex("e87f7f7f7f7f7f7f3f")).At(0), std::nullopt);  // a number too long
  EXPECT_EQ(PythonLines(FromHex("e87e7f7f7f7f3f")).At(0), std::nullopt);      // no line of a file
}

TEST(PythonLines, ALargeTable) {
  std::string table;
  for (int i = 0; i < 50'000; ++i) table += "\xef\x02";  // of 8 units, line +1
  const PythonLines lines(table);
  EXPECT_EQ(lines.At(16 * 49'999), 50'000);
}

}  // namespace
}  // namespace xpu
