#include "report/base/text.h"

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include "format/base/json_text.h"
#include "report/base/json_writer.h"
#include "report/base/output.h"

namespace xpu {
namespace {

TEST(FoldedFrame, SeparatorsAndControls) {
  EXPECT_EQ(ToFoldedFrame("a;b"), "a:b");
  EXPECT_EQ(ToFoldedFrame("a\nb\tc"), "a\\x0ab\\x09c");
  EXPECT_EQ(ToFoldedFrame("void f<int, int>(float*)"), "void f<int, int>(float*)");
  EXPECT_EQ(ToFoldedFrame("  padded  "), "padded");
  EXPECT_EQ(ToFoldedFrame(""), "[unknown]");
  EXPECT_EQ(ToFoldedFrame(" "), "[unknown]");
  EXPECT_EQ(ToFoldedFrame("caf\xc3\xa9 \xff"), "caf\xc3\xa9 \\xff");
}

TEST(FoldedFrame, ANumberAtTheEndIsNotAValue) {
  EXPECT_EQ(ToFoldedFrame("[GPU_Graph]graph 5"), "[GPU_Graph]graph_5");
  EXPECT_EQ(ToFoldedFrame("v 1.5"), "v_1.5");
  EXPECT_EQ(ToFoldedFrame("a 1 2"), "a 1_2");
  EXPECT_EQ(ToFoldedFrame("graph 5 (3 nodes)"), "graph 5 (3 nodes)");
  EXPECT_EQ(ToFoldedFrame("12"), "12");
}

// What flamegraph.pl does with a line: /^(.*)\s+?(\d+(?:\.\d*)?)$/. The stack, or nothing.
std::optional<std::string> StackOf(const std::string& line) {
  const size_t space = line.find_last_of(" \t");
  if (space == std::string::npos) return std::nullopt;
  const std::string value = line.substr(space + 1);
  const size_t digits = std::min(value.find_first_not_of("0123456789"), value.size());
  if (digits == 0) return std::nullopt;
  if (digits < value.size() && value[digits] != '.') return std::nullopt;
  if (value.find_first_not_of("0123456789", digits + 1) != std::string::npos) return std::nullopt;
  return line.substr(0, space);
}

// It does so once more with the stack, for a second value.
TEST(FoldedFrame, FlamegraphsRuleGivesTheStackBack) {
  for (const char* name : {"f", "a;b 7", "graph 5", "1", "x 1. 2.", " 3", "f 9\n", "5 5 5"}) {
    const std::string stack = "main;" + ToFoldedFrame(name);
    EXPECT_EQ(StackOf(stack + " 42"), stack);
    EXPECT_EQ(StackOf(stack), std::nullopt) << stack;
  }
}

TEST(ShortPath, KeepsTheFirstFrameAndAsManyOfTheLastAsFit) {
  const std::vector<std::string> frames = {"main", "step", "forward", "linear", "addmm"};
  EXPECT_EQ(ShortPath(frames, 100), "main > step > forward > linear > addmm");
  EXPECT_EQ(ShortPath(frames, 21), "main > [2 frames] > linear > addmm");
  EXPECT_EQ(ShortPath(frames, 31), "main > [1 frame] > forward > linear > addmm");
  EXPECT_EQ(ShortPath(frames, 1), "main > [3 frames] > addmm");
  EXPECT_EQ(ShortPath(std::span(frames).first(1), 1), "main");
  EXPECT_EQ(ShortPath({}, 1), "");
}

std::string Json(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

TEST(JsonString, Escapes) {
  EXPECT_EQ(Json("plain"), "\"plain\"");
  EXPECT_EQ(Json("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(Json(std::string_view("a\n\0b\x7f", 5)), "\"a\\u000a\\u0000b\\u007f\"");
  // C1: what terminals take for the beginning of a sequence too.
  EXPECT_EQ(Json("a\xc2\x9b"
                 "b"),
            "\"a\\u009bb\"");
  EXPECT_EQ(Json("\xe2\x82\xac"), "\"\xe2\x82\xac\"");
}

// RFC 3629.
std::string CsvOf(std::initializer_list<std::string_view> texts, std::string_view number) {
  CsvLine line;
  for (const std::string_view text : texts) line.Text(text);
  line.Number(number);
  return line.Take().text();
}

TEST(CsvLine, QuotesTextThatASpreadsheetWouldRun) {
  EXPECT_EQ(CsvOf({"=1+1", "@f", "+f(x)", "-Cmd"}, "-3"), "'=1+1,'@f,'+f(x),'-Cmd,-3\n");
  EXPECT_EQ(CsvOf({"-3", "+", "a=b", "", "=\"x\""}, ""), "-3,+,a=b,,\"'=\"\"x\"\"\",\n");
}

TEST(ShownText, EscapesTextsAndNoNumbers) {
  EXPECT_EQ(ShownText::Of("{}: {:>3}\n", "a\n\x1b", 7).text(), "a\\x0a\\x1b:   7\n");
  EXPECT_EQ(ShownText::Lines("a\nb\xe2\x80\xae").text(), "a\nb\\u202e");
  EXPECT_EQ(ShownText::Of("{}", Colors(true).Bad("\x1b")).text(), "\x1b[31m\\x1b\x1b[0m");
}

TEST(JsonWriter, EscapesTextsAndTakesOnlyNumbersForDigits) {
  JsonWriter json;
  json.PutString("\"\x1b\xe2\x81\xa6");
  for (const char* cell : {"-1.5", "", "1,\"own\":2"}) json.PutDigits(cell);
  EXPECT_EQ(json.view(), "\"\\\"\\u001b\\\\u2066\"-1.5nullnull");
}

TEST(JsonString, EachByteThatIsNotUtf8IsReplaced) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(Json("x\xffy"), "\"x" + bad + "y\"");
  EXPECT_EQ(Json("a\xc3"), "\"a" + bad + "\"");
  EXPECT_EQ(Json("\xc0\x80"), "\"" + bad + bad + "\"");            // too long for its value
  EXPECT_EQ(Json("\xed\xa0\x80"), "\"" + bad + bad + bad + "\"");  // a surrogate
  EXPECT_EQ(Json("\xf4\x90\x80"), "\"" + bad + bad + bad + "\"");  // above U+10FFFF
  EXPECT_EQ(Json("\xf0\x9f\x98\x80"), "\"\xf0\x9f\x98\x80\"");
}

TEST(Quoted, OneLineOfAscii) {
  std::string out;
  AppendQuoted(out, "a\"\\\n\t\x01\xff");
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\t\\x01\\xff\"");
}

TEST(Csv, QuotesWhereNeeded) {
  EXPECT_EQ(ToCsvField("plain"), "plain");
  EXPECT_EQ(ToCsvField("f(int, int)"), "\"f(int, int)\"");
  EXPECT_EQ(ToCsvField("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(ToCsvField(""), "");
}

// One of our own colors is no exception, and what reads like an escape is none.
TEST(Csv, EachEscapeIsAByteOfTheName) {
  EXPECT_EQ(ToCsvField("\x1b[31mred\nname\t\xff"), "\\x1b[31mred\\x0aname\\x09\\xff");
  EXPECT_EQ(ToCsvField("a\\x1b"), "a\\x5cx1b");
  EXPECT_EQ(ToCsvField("\\"), "\\x5c");
  EXPECT_EQ(ToCsvField("\x1b,\\\""), "\"\\x1b,\\x5c\"\"\"");
}

TEST(Width, CutInTheMiddle) {
  EXPECT_EQ(ToWidth("short", 10), "short");
  EXPECT_EQ(ToWidth("0123456789", 10), "0123456789");
  EXPECT_EQ(ToWidth("0123456789a", 10), "0123..789a");
  EXPECT_EQ(ToWidth("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4), "\xc3\xa9..\xc3\xa9");
  EXPECT_EQ(ToWidth("a\nb", 10), "a\\x0ab");
  EXPECT_EQ(ToWidth("abc", 2), "..");
  EXPECT_EQ(ToWidth("abc", 0), "");
}

TEST(Human, Numbers) {
  EXPECT_EQ(HumanDuration(999), "999 ns");
  EXPECT_EQ(HumanDuration(1500), "1.5 us");
  EXPECT_EQ(HumanDuration(12'345'678), "12.35 ms");
  EXPECT_EQ(HumanDuration(3'000'000'000), "3 s");
  EXPECT_EQ(HumanDuration(4'000'000'000'000), "4,000 s");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(150'000'000'000), "150.0 GB");
  EXPECT_EQ(HumanBytes(999'999), "1.0 MB");
  EXPECT_EQ(WithThousands(0), "0");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(WithThousands(1234567), "1,234,567");
}

}  // namespace
}  // namespace xpu
