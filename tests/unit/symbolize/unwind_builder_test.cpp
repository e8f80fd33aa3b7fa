#include "symbolize/unwind/unwind_builder.h"

#include <elf.h>
#include <gtest/gtest.h>

#include "tests/unit/symbolize/cfi_builder.h"
#include "tests/unit/symbolize/unwind_rules.h"

namespace xpu {
namespace {

using test::BuildTable;
using test::CfiBuilder;
using test::CfiElf;
using test::U32;
using test::U8;

using test::kNoRule;

using test::Rsp;

// push %rbp at 1, mov %rsp,%rbp at 4, ret at `ret`.
std::string UsualFunction(uint8_t ret) {
  return std::string("\x41\x0e\x10\x86\x02\x43\x0d\x06", 8) + U8(0x40 | (ret - 4u)) +
         "\x0c\x07\x08";
}

TEST(UnwindBuilder, AFunctionWithAFramePointer) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x100, 0x40, UsualFunction(0x3f));
  UnwindStats stats;
  const auto built = BuildTable(frames, &stats);
  ASSERT_TRUE(built.ok()) << built.error().message;
  const UnwindTable table = built.value().view();
  EXPECT_EQ(table.Find(CfiElf::kText + 0xff), kNoRule);
  EXPECT_EQ(table.Find(CfiElf::kText + 0x100), Rsp(8));
  const UnwindRule pushed{UnwindCfa::kRsp, UnwindRbp::kAtCfa, -16, 16};
  EXPECT_EQ(table.Find(CfiElf::kText + 0x101), pushed);
  EXPECT_EQ(table.Find(CfiElf::kText + 0x103), pushed);
  const UnwindRule framed{UnwindCfa::kRbp, UnwindRbp::kAtCfa, -16, 16};
  EXPECT_EQ(table.Find(CfiElf::kText + 0x104), framed);
  EXPECT_EQ(table.Find(CfiElf::kText + 0x13e), framed);
  // rbp is not restored by this CFI: it is what the slot below the stack pointer still holds.
  EXPECT_EQ(table.Find(CfiElf::kText + 0x13f),
            (UnwindRule{UnwindCfa::kRsp, UnwindRbp::kAtCfa, -16, 8}));
  EXPECT_EQ(table.Find(CfiElf::kText + 0x140), kNoRule);
  EXPECT_EQ(stats.entries, 1u);
  EXPECT_EQ(stats.invalid, 0u);
  EXPECT_EQ(stats.rows, 6u);
  EXPECT_EQ(table.header->first_page, CfiElf::kText >> kUnwindPageShift);
  EXPECT_EQ(table.header->page_count, 1u);
}

TEST(UnwindBuilder, EveryPageBeginsWithARow) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x10, 0x2ff0);  // to the end of the third page
  const auto built = BuildTable(frames);
  ASSERT_TRUE(built.ok());
  const UnwindTable table = built.value().view();
  ASSERT_EQ(table.header->page_count, 3u);
  ASSERT_EQ(table.header->row_count, 4u);
  EXPECT_EQ(table.rows[0].offset, 0u);
  EXPECT_EQ(table.rows[1].offset, 0x10u);
  EXPECT_EQ(table.rows[2].offset, 0u);
  EXPECT_EQ(table.Find(CfiElf::kText + 0xf), kNoRule);
  EXPECT_EQ(table.Find(CfiElf::kText + 0x10), Rsp(8));
  EXPECT_EQ(table.Find(CfiElf::kText + 0x1000), Rsp(8));
  EXPECT_EQ(table.Find(CfiElf::kText + 0x2fff), Rsp(8));
  EXPECT_EQ(table.Find(CfiElf::kText + 0x3000), kNoRule);
}

TEST(UnwindBuilder, ARowAtTheBeginningOfAPageIsNotWrittenTwice) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x0, 0x1000).Fde(0x1000, 0x100, "\x0e\x10");
  const auto built = BuildTable(frames);
  const UnwindTable table = built.value().view();
  ASSERT_EQ(table.header->row_count, 3u);
  EXPECT_EQ(table.Find(CfiElf::kText + 0xfff), Rsp(8));
  EXPECT_EQ(table.Find(CfiElf::kText + 0x1000), Rsp(16));
}

TEST(UnwindBuilder, FunctionsInAnyOrder) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x200, 0x100, "\x0e\x18").Fde(0x100, 0x100, "\x0e\x10").Fde(0x300, 0x100, "\x0e\x20");
  const auto built = BuildTable(frames);
  const UnwindTable table = built.value().view();
  EXPECT_EQ(table.Find(CfiElf::kText + 0x1ff), Rsp(16));
  EXPECT_EQ(table.Find(CfiElf::kText + 0x200), Rsp(24));
  EXPECT_EQ(table.Find(CfiElf::kText + 0x3ff), Rsp(32));
}

// As unwinders see it, which look for the last entry that begins before the address.
TEST(UnwindBuilder, AnEntryEndsWhereTheNextOneBegins) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x200, 0x10, "\x0e\x18").Fde(0x100, 0x400, "\x0e\x10");
  UnwindStats stats;
  const auto built = BuildTable(frames, &stats);
  const UnwindTable table = built.value().view();
  EXPECT_EQ(table.Find(CfiElf::kText + 0x1ff), Rsp(16));
  EXPECT_EQ(table.Find(CfiElf::kText + 0x200), Rsp(24));
  EXPECT_EQ(table.Find(CfiElf::kText + 0x210), kNoRule);
  EXPECT_EQ(stats.invalid, 0u);
}

TEST(UnwindBuilder, OfEntriesThatBeginTogetherTheFirstStays) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x100, 0x100, "\x0e\x10").Fde(0x100, 0x200, "\x0e\x18");
  UnwindStats stats;
  const auto built = BuildTable(frames, &stats);
  EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x100), Rsp(16));
  EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x200), kNoRule);
  EXPECT_EQ(stats.entries, 1u);
  EXPECT_EQ(stats.invalid, 1u);
}

TEST(UnwindBuilder, AlignmentBetweenFunctionsKeepsTheRuleBefore) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x100, 0x11).Fde(0x120, 0x10).Fde(0x140, 0x10);  // gaps of 15 and 16 bytes
  const auto built = BuildTable(frames);
  const UnwindTable table = built.value().view();
  EXPECT_EQ(table.Find(CfiElf::kText + 0x11f), Rsp(8));
  EXPECT_EQ(table.Find(CfiElf::kText + 0x12f), Rsp(8));
  EXPECT_EQ(table.Find(CfiElf::kText + 0x130), kNoRule);
  EXPECT_EQ(table.Find(CfiElf::kText + 0x140), Rsp(8));
  EXPECT_EQ(table.header->row_count, 5u);
}

TEST(UnwindBuilder, OnlyCodeHasRules) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(CfiElf::kTextBytes - 0x10, 0x7fffffff);  // cut at the end of the segment
  frames.Fde(CfiElf::kFrames - CfiElf::kText, 0x10);  // data
  frames.Fde(static_cast<uint64_t>(-0x1000), 0x10000);
  frames.Fde(0x100, 0);
  UnwindStats stats;
  const auto built = BuildTable(frames, &stats);
  const UnwindTable table = built.value().view();
  EXPECT_EQ(stats.entries, 1u);
  EXPECT_EQ(stats.invalid, 3u);
  EXPECT_EQ(table.header->page_count, 1u);
  EXPECT_EQ(table.Find(CfiElf::kText + CfiElf::kTextBytes - 1), Rsp(8));
}

TEST(UnwindBuilder, ADamagedEntryIsLeftOutAlone) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x100, 0x100, "\x0e\x10");
  frames.Fde(0x200, 0x100, "\x0e\x18\x3f");  // no such instruction
  frames.Fde(0x300, 0x100, "\x0e\x20");
  UnwindStats stats;
  const auto built = BuildTable(frames, &stats);
  const UnwindTable table = built.value().view();
  EXPECT_EQ(stats.invalid, 1u);
  EXPECT_EQ(table.Find(CfiElf::kText + 0x1ff), Rsp(16));
  EXPECT_EQ(table.Find(CfiElf::kText + 0x200), kNoRule);
  EXPECT_EQ(table.Find(CfiElf::kText + 0x300), Rsp(32));
}

TEST(UnwindBuilder, TheFunctionsOfADamagedCieAreUnsupported) {
  CfiBuilder frames;
  frames.Cie("\x3f");
  frames.Fde(0x100, 0x100);
  UnwindStats stats;
  const auto built = BuildTable(frames, &stats);
  EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x100).cfa, UnwindCfa::kUnsupported);
  EXPECT_EQ(stats.invalid, 1u);
  EXPECT_EQ(stats.unsupported, 1u);
}

TEST(UnwindBuilder, FilesWithoutCallFrames) {
  CfiElf other{.name = ".text", .content = "nothing here"};
  EXPECT_EQ(BuildTable(other.Build()).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(BuildTable(other.Build()).error().message, "no call frame information of its code");
  CfiBuilder only_cie;
  only_cie.Cie();
  EXPECT_EQ(BuildTable(only_cie).error().kind, ErrorKind::kNotFound);
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x100, 0x10);
  CfiElf arm{.content = frames.bytes(), .machine = EM_AARCH64};
  EXPECT_EQ(BuildTable(arm.Build()).error().kind, ErrorKind::kUnsupported);
}

// Everything of a table is looked at, so that the sanitizers see it.
void Touch(const std::string& file) {
  const auto built = BuildTable(file);
  if (!built.ok()) return;
  const UnwindTable table = built.value().view();
  for (uint64_t at = CfiElf::kText; at < CfiElf::kText + 0x400; ++at)
    static_cast<void>(table.Find(at));
}

std::string SmallSection() {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x100, 0x40, UsualFunction(0x3f)).Fde(0x140, 0x20);
  frames.Cie(CfiBuilder::UsualCie(), "zPLR", U8(0x9b) + U32(0x1234) + U8(0x1b) + U8(0x1b));
  frames.Fde(0x200, 0x20, "\x0f" + test::Block("\x77\x08\x06\x23\x08") + "\x0a\x44\x0b");
  return frames.bytes();
}

TEST(UnwindBuilder, CutAtEveryByte) {
  const std::string section = SmallSection();
  for (size_t size = 0; size < section.size(); ++size) {
    // At the end of the file, and on the heap, so that a read after it is seen.
    for (const bool with_sections : {true, false}) {
      CfiElf elf{.content = section.substr(0, size), .with_sections = with_sections};
      elf.with_header = true;
      const std::string file = elf.Build();
      Touch(file);
      Touch(file.substr(0, CfiElf::kTextOffset + CfiElf::kTextBytes + size));
    }
  }
}

TEST(UnwindBuilder, EveryByteFlipped) {
  const std::string section = SmallSection();
  for (size_t at = 0; at < section.size(); ++at) {
    for (const char flip : {'\x01', '\x04', '\x10', '\x40', '\x80', '\xff'}) {
      std::string damaged = section;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      Touch(CfiElf{.content = damaged}.Build());
      CfiElf without{.content = damaged, .with_sections = false, .with_header = true};
      Touch(without.Build());
    }
  }
}

}  // namespace
}  // namespace xpu
