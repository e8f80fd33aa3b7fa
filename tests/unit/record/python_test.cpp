// What the recorder makes of Python: which interpreter a file is, and what the BPF programs tell.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "format/python_lines.h"
#include "record/python/python_files.h"
#include "record/python/python_stacks.h"
#include "record/sink/python_codes.h"
#include "symbolize/elf/data_symbol.h"
#include "tests/unit/record/peer_testing.h"

namespace xpu::test {
namespace {

constexpr char kPython[] = "/usr/bin/python3.11";

TEST(PythonRuntime, KnowsTheInterpreterOfThisSystem) {
  auto file = ElfFile::Open(kPython);
  if (!file.ok()) GTEST_SKIP() << "no " << kPython;
  const ElfImage& image = const_cast<Result<ElfFile>&>(file)->image();
  const PythonRuntime runtime = FindPythonRuntime(image);
  EXPECT_EQ(runtime.kind, PythonRuntime::Kind::kKnown);
  EXPECT_EQ(runtime.version, 3 << 8 | 11);
  EXPECT_NE(runtime.link_address, 0u);
  EXPECT_NE(runtime.code_type, 0u);
  EXPECT_EQ(runtime.layout.frame_code, 32);
  EXPECT_EQ(NameOf(runtime), "Python 3.11");
}

TEST(MayDefine, EveryNameThatIsThereAndFewOthers) {
  auto file = ElfFile::Open(kPython);
  if (!file.ok()) GTEST_SKIP() << "no " << kPython;
  const ElfImage& image = file->image();
  for (const char* name : {"PyEval_EvalFrameEx", "_PyRuntime", "Py_Version"}) {
    EXPECT_TRUE(MayDefine(image, name)) << name;
  }
  int others = 0;
  for (int i = 0; i < 100; ++i) others += MayDefine(image, "no_such_name_" + std::to_string(i));
  EXPECT_LT(others, 40);
}

TEST(PythonRuntime, OtherFilesHaveNoRuntime) {
  auto file = ElfFile::Open("/proc/self/exe");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(FindPythonRuntime(file->image()).kind, PythonRuntime::Kind::kNone);
}

TEST(PythonRuntime, NamesVersions) {
  PythonRuntime runtime;
  runtime.kind = PythonRuntime::Kind::kOtherVersion;
  EXPECT_EQ(NameOf(runtime), "Python older than 3.9");
  runtime.version = 3 << 8 | 15;
  EXPECT_EQ(NameOf(runtime), "Python 3.15");
}

using Line = std::optional<int64_t>;

// Pairs of bytes of code and of lines.
TEST(NewLineTable, OfPython39) {
  // def f():      line 0
  //     a         line 1, from byte 0
  //     b         line 301, from byte 20
  //     a again   line 1, from byte 24
  const std::string table("\x00\x01\x14\x7f\x00\x7f\x00\x2e\x04\x80\x00\x80\x00\xd4", 14);
  const std::string written = NewLineTable(table, 3 << 8 | 9);
  const PythonLines lines(written);
  EXPECT_EQ(lines.At(0), Line(1));
  EXPECT_EQ(lines.At(18), Line(1));
  EXPECT_EQ(lines.At(20), Line(301));
  EXPECT_EQ(lines.At(22), Line(301));
  EXPECT_EQ(lines.At(24), Line(1));
  EXPECT_EQ(lines.At(500), Line(1));
  EXPECT_EQ(lines.At(24 + 512), std::nullopt);
  // All of the code is in the first line.
  const std::string empty = NewLineTable("", 3 << 8 | 9);
  EXPECT_EQ(PythonLines(empty).At(100), Line(0));
}

TEST(NewLineTable, OfPython310) {
  const std::string table("\x04\x01\x06\x80\x00\x7f\x08\x0a\x02\xf6", 10);
  const std::string written = NewLineTable(table, 3 << 8 | 10);
  const PythonLines lines(written);
  EXPECT_EQ(lines.At(0), Line(1));
  EXPECT_EQ(lines.At(2), Line(1));
  EXPECT_EQ(lines.At(4), std::nullopt);  // of no line
  EXPECT_EQ(lines.At(8), std::nullopt);
  EXPECT_EQ(lines.At(10), Line(138));
  EXPECT_EQ(lines.At(16), Line(138));
  EXPECT_EQ(lines.At(18), Line(128));
  EXPECT_EQ(lines.At(20), std::nullopt);
  EXPECT_EQ(NewLineTable("", 3 << 8 | 10), "");
  EXPECT_EQ(NewLineTable("\x04", 3 << 8 | 10), "");  // half a pair
}

TEST(PythonCodes, OldLineTablesAreRewritten) {
  PythonCodes codes;
  const uint32_t code = codes.NumberOf({.name = "f",
                                        .path = "f.py",
                                        .first_line = 7,
                                        .line_table = "\x04\x01",
                                        .version = 3 << 8 | 10});
  const PythonCodes::Content* content = codes.TakeDue(code);
  ASSERT_NE(content, nullptr);
  EXPECT_EQ(PythonLines(content->line_table).At(2), Line(1));
}

TEST(PythonText, IsUtf8) {
  const std::array<uint8_t, 3> latin{'a', 0xe9, 'b'};
  EXPECT_EQ(PythonText(std::as_bytes(std::span(latin)), 1), "a\u00e9b");
  const std::array<uint16_t, 2> wide{0x4e16, 'x'};
  EXPECT_EQ(PythonText(std::as_bytes(std::span(wide)), 2), "\u4e16x");
  const std::array<uint32_t, 2> widest{0x1f600, 0x110000};
  EXPECT_EQ(PythonText(std::as_bytes(std::span(widest)), 4), "\U0001f600");
  EXPECT_EQ(PythonText(std::as_bytes(std::span(latin)), 2), std::string("\xee\xa5\xa1", 3));
  EXPECT_EQ(PythonText(std::as_bytes(std::span(latin)), 3), "");
}

constexpr uint64_t Word(uint32_t fingerprint, uint32_t low) {
  return uint64_t{fingerprint} << XPU_PYTHON_FINGERPRINT_SHIFT | low;
}

TEST(PythonFrames, AFrameOnTheInterpretersOwnIsAnEntry) {
  // 3.12: inner, outer, own, outermost, own
  const __u64 words[] = {0x1000, Word(7, 4), 0x2000,     Word(8, 6), 0,
                         0x7f10, 0x3000,     Word(9, 0), 0,          0x7f20};
  const auto frames = PythonFramesOf(words);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].code, 0x1000u);
  EXPECT_EQ(frames[0].fingerprint, 7u);
  EXPECT_EQ(frames[0].offset, 4u);
  EXPECT_FALSE(frames[0].is_entry);
  EXPECT_TRUE(frames[1].is_entry);
  EXPECT_TRUE(frames[2].is_entry);
}

TEST(PythonFrames, ALoopThatRunsNoFunctionHasAFrameWithoutCode) {
  // own, inner, own, own: a destructor that a function called when it had ended
  const __u64 words[] = {0, 0x7f10, 0x1000, Word(7, 4), 0, 0x7f20, 0, 0x7f30};
  const auto frames = PythonFramesOf(words);
  ASSERT_EQ(frames.size(), 3u);
  for (const RawPythonFrame& frame : frames) EXPECT_TRUE(frame.is_entry);
  EXPECT_EQ(frames[0].code, 0u);
  EXPECT_EQ(frames[1].code, 0x1000u);
  EXPECT_EQ(frames[2].code, 0u);
}

std::vector<uint64_t> CodesOf(std::span<const __u64> words) {
  std::vector<uint64_t> codes;
  for (const RawPythonFrame& frame : PythonFramesOf(words)) codes.push_back(frame.code);
  return codes;
}

// One calls 0x1000, 0x3000 and 0x4000, with 0x5000; the other 0x2000 between them.
TEST(PythonFrames, FunctionsOfTwoStatesAreInTheOrderOfTheirLoops) {
  const std::vector<uint64_t> order = {0x1000, 0x2000, 0x3000, 0x5000, 0x4000};
  const __u64 since_312[] = {
      0x1000, Word(7, 4), 0, 0x7f10, 0x3000,           Word(7, 4), 0x5000, Word(7, 4), 0, 0x7f30,
      0x4000, Word(7, 4), 0, 0x7f40, XPU_PYTHON_STATE, 0,          0x2000, Word(8, 6), 0, 0x7f20};
  EXPECT_EQ(CodesOf(since_312), order);
  constexpr uint32_t kEntry = XPU_PYTHON_IS_ENTRY;
  const __u64 in_311[] = {0x2000,
                          Word(8, 6 | kEntry),
                          0,
                          0x7f20,
                          XPU_PYTHON_STATE,
                          0,
                          0x1000,
                          Word(7, 4 | kEntry),
                          0,
                          0x7f10,
                          0x3000,
                          Word(7, 4),
                          0x5000,
                          Word(7, 4 | kEntry),
                          0,
                          0x7f30,
                          0x4000,
                          Word(7, 4 | kEntry),
                          0,
                          0x7f40};
  EXPECT_EQ(CodesOf(in_311), order);
}

TEST(PythonFrames, InvalidFramesOfAStateLeaveThoseOfAnother) {
  const __u64 words[] = {0x2000,     Word(8, 6),       0, 0x7f20, XPU_PYTHON_STATE, 0, 0x9000,
                         Word(7, 4), XPU_PYTHON_BEGIN, 0, 0x1000, Word(7, 4),       0, 0x7f10};
  EXPECT_EQ(CodesOf(words), (std::vector<uint64_t>{0x1000, 0x2000}));
}

TEST(PythonFrames, OlderVersionsMarkEntriesThemselves) {
  const __u64 words[] = {0x1000, Word(7, 4 | XPU_PYTHON_IS_ENTRY), 0x2000, Word(8, 6), 0x3000};
  const auto frames = PythonFramesOf(words);  // the last word is half a frame
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_TRUE(frames[0].is_entry);
  EXPECT_EQ(frames[0].offset, 4u);
  EXPECT_FALSE(frames[1].is_entry);
}

TEST(PythonFrames, InvalidFramesAreLeftOut) {
  const __u64 words[] = {0x1000, Word(7, 4), XPU_PYTHON_BEGIN, 0, 0x2000, Word(8, 6)};
  const auto frames = PythonFramesOf(words);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].code, 0x2000u);
}

class PythonCodesTest : public PeerTest {};

TEST_F(PythonCodesTest, EqualCodesAreDefinedOnce) {
  const PythonCodes::Content one{"Linear.forward", "/app/linear.py", 114, "\x80\x01", 0x30b};
  PythonCodes::Content other = one;
  other.first_line = 115;
  EXPECT_EQ(sink_->Define(one), 1u);
  EXPECT_EQ(sink_->Define(other), 2u);
  EXPECT_EQ(sink_->Define(one), 1u);
  const EventBatch events = Events();
  ASSERT_EQ(events.python_codes.size(), 2u);
  const PythonCode& code = events.python_codes[0];
  EXPECT_EQ(code.code, 1u);
  EXPECT_EQ(reader_->String(code.name), "Linear.forward");
  EXPECT_EQ(reader_->String(code.path), "/app/linear.py");
  EXPECT_EQ(code.first_line, 114u);
  EXPECT_EQ(reader_->String(code.line_table), "\x80\x01");
  EXPECT_EQ(code.version, 0x30bu);
  EXPECT_EQ(events.python_codes[1].first_line, 115u);
}

}  // namespace
}  // namespace xpu::test
