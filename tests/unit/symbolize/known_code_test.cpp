#include "symbolize/unwind/known_code.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include <elf.h>
#include <gtest/gtest.h>

#include "tests/unit/symbolize/cfi_builder.h"
#include "tests/unit/symbolize/unwind_rules.h"

namespace xpu {
namespace {

using std::string_view_literals::operator""sv;
using test::BuildTable;
using test::CfiBuilder;
using test::CfiElf;
using test::kNoRule;

constexpr UnwindRule kOutermost{.cfa = UnwindCfa::kEnd};

// A file whose code is breakpoints but for `code` at `place`, which is its entry point as well.
std::string FileWith(std::string_view code, uint64_t place, const CfiBuilder& frames,
                     uint64_t entry) {
  CfiElf elf;
  elf.content = frames.bytes();
  std::string file = elf.Build();
  file.replace(CfiElf::kTextOffset + place, code.size(), code);
  std::memcpy(file.data() + offsetof(Elf64_Ehdr, e_entry), &entry, sizeof(entry));
  return file;
}

CfiBuilder OneFunction() {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x100, 0x40);
  return frames;
}

// xor %ebp,%ebp; mov %rsp,%rdi; call to the function at 0x100, from 0x205 on; hlt
constexpr std::string_view kStart = "\x31\xed\x48\x89\xe7\xe8\xf6\xfe\xff\xff\xf4"sv;

TEST(KnownCode, AnEntryPointWithoutCfiIsTheOutermostFrame) {
  const auto built = BuildTable(FileWith(kStart, 0x200, OneFunction(), CfiElf::kText + 0x200));
  ASSERT_TRUE(built.ok()) << built.error().message;
  const UnwindTable table = built.value().view();
  EXPECT_EQ(table.Find(CfiElf::kText + 0x200), kOutermost);
  EXPECT_EQ(table.Find(CfiElf::kText + 0x209), kOutermost);  // the last byte of its call
  EXPECT_EQ(table.Find(CfiElf::kText + 0x1ff), kNoRule);
  EXPECT_EQ(table.Find(CfiElf::kText + 0x220), kNoRule);
  EXPECT_EQ(table.Find(CfiElf::kText + 0x100), test::Rsp(8));
}

TEST(KnownCode, AnEntryPointWithCfiKeepsIt) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x200, 0x20);
  const auto built = BuildTable(FileWith(kStart, 0x200, frames, CfiElf::kText + 0x200));
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x209), test::Rsp(8));
}

TEST(KnownCode, AnEntryPointOutsideOfTheCodeIsLeftOut) {
  for (const uint64_t entry : {uint64_t{0}, uint64_t{1}, CfiElf::kFrames, ~uint64_t{0}}) {
    const auto built = BuildTable(FileWith(kStart, 0x200, OneFunction(), entry));
    ASSERT_TRUE(built.ok());
    EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x209), kNoRule) << entry;
  }
}

TEST(KnownCode, AnEntryPointThatCallsNothingIsLeftOut) {
  const auto built =
      BuildTable(FileWith("\x31\xed\xf4"sv, 0x200, OneFunction(), CfiElf::kText + 0x200));
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x200), kNoRule);
}

// call *%r9; mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall
TEST(KnownCode, TheCallByWhichThreadsOfMuslStartIsTheOutermostFrame) {
  constexpr std::string_view clone = "\x41\xff\xd1\x89\xc7\x31\xc0\xb0\x3c\x0f\x05"sv;
  const auto built = BuildTable(FileWith(clone, 0x300, OneFunction(), 0));
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x302), kOutermost);
  EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x320), kNoRule);
}

TEST(KnownCode, AFileWithoutCallFrameInformationHasItsEntryPoint) {
  const auto built = BuildTable(FileWith(kStart, 0x200, CfiBuilder(), CfiElf::kText + 0x200));
  ASSERT_TRUE(built.ok()) << built.error().message;
  EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x209), kOutermost);
}

}  // namespace
}  // namespace xpu
