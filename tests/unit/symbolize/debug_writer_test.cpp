#include "symbolize/dwarf/debug_writer.h"

#include <gtest/gtest.h>

#include "format/base/text.h"
#include "symbolize/dwarf/debug_info.h"
#include "tests/unit/symbolize/dwarf_builder.h"

namespace xpu {
namespace {

using test::FramesAt;

constexpr uint32_t kNone = dwarf::RangeMap::kNone;

std::string ElfOf(const std::vector<DebugSectionBytes>& sections) {
  test::DebugElf elf;
  for (const auto& section : sections) elf[section.name] = section.bytes;
  return elf.Build();
}

// Two ranges, one inlined function in both with one of its own, one more in the second.
SourceFunction Sample() {
  return {.name = "_Z3runv",
          .ranges = {{0x1000, 0x1100}, {0x2000, 0x2010}},
          .inlined = {{.function = "outer",
                       .call_file = "/src/a.cpp",
                       .call_line = 12,
                       .parent = kNone,
                       .ranges = {{0x1010, 0x1040}, {0x2000, 0x2008}}},
                      {.function = "_Z5innerv",
                       .call_file = "rel/b.h",
                       .call_line = 70000,
                       .parent = 0,
                       .ranges = {{0x1020, 0x1030}}},
                      {.function = "outer",
                       .call_file = "",
                       .call_line = 0,
                       .parent = kNone,
                       .ranges = {{0x2008, 0x200c}}}},
          .rows = {{.link_address = 0x1000, .file = "/src/a.cpp", .line = 10},
                   {.link_address = 0x1010, .file = "rel/b.h", .line = 900},
                   {.link_address = 0x1020, .file = "/c", .line = 3},
                   {.link_address = 0x1030, .file = "/odd//d.h", .line = 4},
                   {.link_address = 0x1040, .file = "", .line = 0, .is_gap = true},
                   {.link_address = 0x1050, .file = "plain.c", .line = 0},
                   {.link_address = 0x2000, .file = "/src/a.cpp", .line = 4000000000}}};
}

SourceFunction Leaf(std::string_view name, uint64_t begin) {
  return {.name = name,
          .ranges = {{begin, begin + 16}},
          .inlined = {},
          .rows = {{.link_address = begin, .file = "/src/a.cpp", .line = 1}}};
}

TEST(DebugWriter, EveryAddressIsAsItWas) {
  const std::string elf =
      ElfOf(WriteDebugSections({Leaf("last", 0x2800), Sample(), Leaf("plain", 0x1100)}));
  auto info = DebugInfo::Parse(elf, "slice");
  ASSERT_TRUE(info.ok());
  const auto at = [&](uint64_t address) { return FramesAt(info.value(), address); };
  EXPECT_EQ(at(0x0fff), "");
  EXPECT_EQ(at(0x1000), "_Z3runv /src/a.cpp:10\n");
  EXPECT_EQ(at(0x1010), "+outer rel/b.h:900\n_Z3runv /src/a.cpp:12\n");
  EXPECT_EQ(at(0x102f), "+_Z5innerv /c:3\n+outer rel/b.h:70000\n_Z3runv /src/a.cpp:12\n");
  EXPECT_EQ(at(0x1030), "+outer /odd//d.h:4\n_Z3runv /src/a.cpp:12\n");
  EXPECT_EQ(at(0x1040), "_Z3runv :0\n");
  EXPECT_EQ(at(0x10ff), "_Z3runv plain.c:0\n");
  EXPECT_EQ(at(0x1100), "plain /src/a.cpp:1\n");
  EXPECT_EQ(at(0x1110), "");
  EXPECT_EQ(at(0x2007), "+outer /src/a.cpp:4000000000\n_Z3runv /src/a.cpp:12\n");
  EXPECT_EQ(at(0x2008), "+outer /src/a.cpp:4000000000\n_Z3runv :0\n");
  EXPECT_EQ(at(0x200c), "_Z3runv /src/a.cpp:4000000000\n");
  EXPECT_EQ(at(0x2800), "last /src/a.cpp:1\n");
}

TEST(DebugWriter, WhatIsReadBackIsWrittenTheSame) {
  const auto sections = WriteDebugSections({Sample(), Leaf("plain", 0x1100)});
  const std::string elf = ElfOf(sections);
  auto info = DebugInfo::Parse(elf, "slice");
  ASSERT_TRUE(info.ok());
  const std::vector<uint64_t> addresses = {0x1100, 0x2000, 0x1000, 0x1101, 0x1300};
  const auto functions = info.value().FunctionsAt(addresses);
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].name, "plain");
  EXPECT_EQ(functions[1].name, "_Z3runv");
  const auto again = WriteDebugSections(functions);
  ASSERT_EQ(again.size(), sections.size());
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i].name, sections[i].name);
    EXPECT_EQ(again[i].bytes, sections[i].bytes) << again[i].name;
  }
}

TEST(DebugWriter, NoFunctionsGiveNoSections) { EXPECT_TRUE(WriteDebugSections({}).empty()); }

}  // namespace
}  // namespace xpu
