#include "symbolize/unwind/go_code.h"

#include <string>
#include <vector>

#include <elf.h>
#include <gtest/gtest.h>

#include "tests/unit/symbolize/cfi_builder.h"

namespace xpu {
namespace {

using test::BuildTable;
using test::CfiBuilder;
using test::CfiElf;
using test::U32;
using test::U64;
using test::U8;
using test::Uleb;

constexpr uint64_t kGoText = 0x100;  // where Go's code begins in that of the file
constexpr uint32_t kGo118 = 0xfffffff0, kGo120 = 0xfffffff1;
constexpr uint8_t kTop = 1, kWritesStackPointer = 2;

// The change of a depth and the bytes of code that it holds for.
std::string Step(int change, uint64_t bytes) {
  return Uleb(static_cast<uint64_t>(change < 0 ? -2 * change - 1 : 2 * change)) + Uleb(bytes);
}

struct GoFunction {
  uint64_t begin;
  std::string depths;
  uint8_t flags = 0;
};

// .gopclntab of functions up to `end`.
std::string GoTable(uint32_t magic, const std::vector<GoFunction>& functions, uint64_t end,
                    uint64_t text) {
  std::string depths(1, '\0'), pairs, records;
  const uint64_t pair_bytes = 8 * functions.size() + 4;
  for (const GoFunction& function : functions) {
    pairs += U32(function.begin) + U32(pair_bytes + records.size());
    std::string record = U32(function.begin) + U32(0) + U32(0) + U32(0) + U32(depths.size());
    record.resize(magic == kGo118 ? 37 : 41);
    records += record + U8(function.flags) + U8(0) + U8(0);
    depths += function.depths;
  }
  pairs += U32(end);
  constexpr uint64_t kHeader = 8 + 8 * 8;
  std::string table = U32(magic) + U8(0) + U8(0) + U8(1) + U8(8) + U64(functions.size()) + U64(0) +
                      U64(text) + U64(0) + U64(0) + U64(0) + U64(kHeader);
  return table + U64(kHeader + depths.size()) + depths + pairs + records;
}

// The code of runtime.asmcgocall around its call; `load`: what comes between.
std::string CallOfC(const std::string& load) {
  return "\xff\xd0" + load + "\x48\x8b\x7c\x24\x30\x48\x8b\x77\x08\x48\x2b\x74\x24\x28";
}

const std::string kGetTls = std::string("\x48\x8b\x0d") + std::string(4, '\0');

CfiElf Program(uint32_t magic, const std::string& load = {}) {
  std::string code(kGoText + 0x100, '\xcc');
  code.replace(kGoText + 0x24, 5, "\x48\x89\x6c\x24\x10");  // mov %rbp,16(%rsp)
  code.replace(kGoText + 0x60, 1, "\x55");                  // push %rbp
  const std::string call = CallOfC(load);
  code.replace(kGoText + 0xb0, call.size(), call);
  const std::vector<GoFunction> functions = {
      {.begin = 0, .depths = Step(1, 0x20)},
      {.begin = 0x20, .depths = Step(1, 4) + Step(24, 0x2c) + Step(-24, 0x10)},
      {.begin = 0x60, .depths = Step(1, 1) + Step(8, 2) + Step(16, 0x1d)},
      {.begin = 0x80, .depths = Step(1, 0x20), .flags = kTop},
      {.begin = 0xa0, .depths = Step(1, 0x40), .flags = kWritesStackPointer},
      {.begin = 0xe0, .depths = Step(17, 0x10) + Step(-200, 1)},
  };
  return {.name = ".gopclntab",
          .content = GoTable(magic, functions, 0x100, CfiElf::kText + kGoText),
          .code = code};
}

UnwindRule Above(int32_t bytes, bool is_saved = false) {
  if (!is_saved) return {.cfa = UnwindCfa::kRsp, .cfa_offset = bytes};
  return {UnwindCfa::kRsp, UnwindRbp::kAtCfa, -16, bytes};
}

void ExpectRules(const CfiElf& elf) {
  const auto built = BuildTable(elf.Build());
  ASSERT_TRUE(built.ok()) << built.error().message;
  const UnwindTable table = built.value().view();
  const auto at = [&](uint64_t offset) { return table.Find(CfiElf::kText + kGoText + offset); };
  EXPECT_EQ(at(0), Above(8)) << "a function without a frame";
  EXPECT_EQ(at(0x1f), Above(8));
  EXPECT_EQ(at(0x23), Above(8));
  EXPECT_EQ(at(0x24), Above(32)) << "the frame pointer is not saved yet";
  EXPECT_EQ(at(0x29), Above(32, true));
  EXPECT_EQ(at(0x4f), Above(32, true));
  EXPECT_EQ(at(0x50), Above(8)) << "the frame is gone";
  EXPECT_EQ(at(0x60), Above(8));
  EXPECT_EQ(at(0x61), Above(16, true)) << "saved by a push";
  EXPECT_EQ(at(0x63), Above(32, true));
  EXPECT_EQ(at(0x80).cfa, UnwindCfa::kEnd);
  EXPECT_EQ(at(0xa0).cfa, UnwindCfa::kUnsupported) << "it switches stacks";
  EXPECT_EQ(at(0xe0), Above(24)) << "no instruction saves the frame pointer";
  EXPECT_EQ(at(0xf0).cfa, UnwindCfa::kUnsupported) << "a depth below zero";
  EXPECT_EQ(at(0x100).cfa, UnwindCfa::kNone) << "after the last function";
}

TEST(GoCode, OfEachVersion) {
  ExpectRules(Program(kGo118));
  ExpectRules(Program(kGo120));
  EXPECT_FALSE(BuildTable(Program(0xfffffff2).Build()).ok());
}

TEST(GoCode, TheCallOfC) {
  for (const std::string& load : {std::string(), kGetTls}) {
    const auto built = BuildTable(Program(kGo120, load).Build());
    ASSERT_TRUE(built.ok());
    const UnwindTable table = built.value().view();
    const auto at = [&](uint64_t offset) {
      return table.Find(CfiElf::kText + kGoText + offset).cfa;
    };
    EXPECT_EQ(at(0xaf), UnwindCfa::kUnsupported);
    EXPECT_EQ(at(0xb1), UnwindCfa::kGoSwitch);
    EXPECT_EQ(at(0xb2), UnwindCfa::kUnsupported);
  }
  // Another instruction: nothing is known.
  const auto other = BuildTable(Program(kGo120, "\x90\x90\x90").Build());
  EXPECT_EQ(other.value().view().Find(CfiElf::kText + kGoText + 0xb1).cfa, UnwindCfa::kUnsupported);
}

// From Go 1.21 on.
TEST(GoCode, FunctionsThatKeepTheirFramePointerOnAnotherStack) {
  const UnwindRule other{UnwindCfa::kOtherStack, UnwindRbp::kAtCfa, -16, 16};
  const std::string with_save = "\x48\x89\x6c\x24\x10\x48\x8d\x6c\x24\x10";
  for (const std::string& prologue : {std::string("\x55\x48\x89\xe5"), with_save}) {
    std::string code(kGoText + 0x40, '\xcc');
    code.replace(kGoText, prologue.size(), prologue);
    code.replace(kGoText + 0x20, 2, "\x5d\xc3");
    const std::string depths = prologue[0] == '\x55' ? Step(1, 1) + Step(8, 0x3f) : Step(25, 0x40);
    const CfiElf elf{.name = ".gopclntab",
                     .content = GoTable(kGo120, {{0, depths, kWritesStackPointer}}, 0x40,
                                        CfiElf::kText + kGoText),
                     .code = code};
    const auto built = BuildTable(elf.Build());
    ASSERT_TRUE(built.ok());
    const UnwindTable table = built.value().view();
    const auto at = [&](uint64_t offset) { return table.Find(CfiElf::kText + kGoText + offset); };
    EXPECT_EQ(at(0), Above(prologue[0] == '\x55' ? 8 : 32));
    EXPECT_EQ(at(prologue.size() - 1), Above(prologue[0] == '\x55' ? 16 : 32, true));
    EXPECT_EQ(at(prologue.size()), other);
    EXPECT_EQ(at(0x20), other);
    EXPECT_EQ(at(0x21), Above(8)) << "the frame pointer is the caller's";
    EXPECT_EQ(at(0x22), other);
  }
}

// The entries of Go's own .debug_frame know nothing of what switches stacks.
TEST(GoCode, InsteadOfItsDebugFrame) {
  CfiBuilder frames(false);
  frames.Cie(CfiBuilder::UsualCie(), "");
  frames.Fde(kGoText, 0x100, "\x0e\x40");
  frames.Fde(0x20, 0x20, "\x0e\x10");
  CfiElf elf = Program(kGo120);
  elf.debug_frame = frames.bytes();
  ExpectRules(elf);
  const auto built = BuildTable(elf.Build());
  EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x20), Above(16)) << "C beside it";
}

TEST(GoCode, DamagedTablesAreSound) {
  const CfiElf whole = Program(kGo120);
  const auto touch = [](const CfiElf& elf) {
    const auto built = BuildTable(elf.Build());  // checks that it is sound
    if (!built.ok()) return;
    for (uint64_t at = 0; at < 0x300; ++at) built.value().view().Find(CfiElf::kText + at);
  };
  for (size_t at = 0; at < whole.content.size(); ++at) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      CfiElf damaged = whole;
      damaged.content[at] = value;
      touch(damaged);
    }
    CfiElf cut = whole;
    cut.content.resize(at);
    touch(cut);
  }
}

}  // namespace
}  // namespace xpu
