#include "symbolize/symbolizer.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::ElfBuilder;
using test::TempFolder;
using Kind = Symbolizer::ProblemKind;

constexpr uint64_t kText = ElfBuilder::kTextOffset;

class SymbolizerTest : public testing::Test {
 protected:
  SymbolizerTest() : symbolizer_({.debug_directory = folder_ / "debug"}) {}
  TempFolder folder_;
  Symbolizer symbolizer_;
};

TEST_F(SymbolizerTest, FileOffsetsThroughTheProgramHeaders) {
  ElfBuilder("id-1").Symbol("first", 0, 0x40).Symbol("second", 0x40, 0x40).WriteTo(folder_ / "a");
  const ModuleId module = symbolizer_.Module(folder_ / "a", "id-1");
  EXPECT_EQ(symbolizer_.FunctionAt(module, kText + 0x3f), "first");
  EXPECT_EQ(symbolizer_.FunctionAt(module, kText + 0x40), "second");
  EXPECT_EQ(symbolizer_.FunctionAt(module, kText + 0x80), std::nullopt);
  EXPECT_EQ(symbolizer_.FunctionAt(module, 0x10), std::nullopt);  // not in a segment
  EXPECT_TRUE(symbolizer_.problems().empty());
}

TEST_F(SymbolizerTest, OneIdForAFileAndBuild) {
  EXPECT_EQ(symbolizer_.Module("/a", "1"), symbolizer_.Module("/a", "1"));
  EXPECT_NE(symbolizer_.Module("/a", "1"), symbolizer_.Module("/a", "2"));
  EXPECT_NE(symbolizer_.Module("/a", "1"), symbolizer_.Module("/b", "1"));
}

TEST_F(SymbolizerTest, AnotherBuildIsRefusedAndNamedOnce) {
  ElfBuilder("new").Symbol("wrong", 0, 0x40).WriteTo(folder_ / "a");
  const ModuleId module = symbolizer_.Module(folder_ / "a", "old");
  EXPECT_EQ(symbolizer_.FunctionAt(module, kText), std::nullopt);
  EXPECT_EQ(symbolizer_.FunctionAt(module, kText + 1), std::nullopt);
  ASSERT_EQ(symbolizer_.problems().size(), 1u);
  EXPECT_EQ(symbolizer_.problems()[0].kind, Kind::kMismatch);
  EXPECT_EQ(symbolizer_.problems()[0].message,
            folder_ / "a" + ": is not the recorded file: build-id 6e6577, recorded 6f6c64");
}

TEST_F(SymbolizerTest, WithoutARecordedBuildIdThePathIsBelieved) {
  ElfBuilder("any").Symbol("f", 0, 0x40).WriteTo(folder_ / "a");
  EXPECT_EQ(symbolizer_.FunctionAt(symbolizer_.Module(folder_ / "a", ""), kText), "f");
}

TEST_F(SymbolizerTest, MissingAndUnreadableFiles) {
  std::ofstream(folder_ / "script") << "#!/bin/sh\n# this is longer than the header of ELF files\n";
  EXPECT_EQ(symbolizer_.FunctionAt(symbolizer_.Module(folder_ / "none", "x"), 0), std::nullopt);
  EXPECT_EQ(symbolizer_.FunctionAt(symbolizer_.Module(folder_ / "script", ""), 0), std::nullopt);
  ASSERT_EQ(symbolizer_.problems().size(), 2u);
  EXPECT_EQ(symbolizer_.problems()[0].kind, Kind::kMissing);
  EXPECT_EQ(symbolizer_.problems()[1].kind, Kind::kUnreadable);
}

TEST_F(SymbolizerTest, WhatIsNoFileIsNoProblem) {
  EXPECT_EQ(symbolizer_.FunctionAt(symbolizer_.Module("[vdso]", ""), 0), std::nullopt);
  EXPECT_EQ(symbolizer_.FunctionAt(symbolizer_.Module("//anon", ""), 0), std::nullopt);
  EXPECT_TRUE(symbolizer_.problems().empty());
}

TEST_F(SymbolizerTest, AStrippedFileTakesItsDebugFile) {
  ElfBuilder("\xab\xcd").DynamicSymbol("exported", 0, 0x40).WriteTo(folder_ / "a");
  std::filesystem::create_directories(folder_ / "debug/.build-id/ab");
  ElfBuilder("\xab\xcd")
      .Symbol("hidden", 0x40, 0x40)
      .WriteTo(folder_ / "debug/.build-id/ab/cd.debug");
  const ModuleId module = symbolizer_.Module(folder_ / "a", "\xab\xcd");
  EXPECT_EQ(symbolizer_.FunctionAt(module, kText), "exported");
  EXPECT_EQ(symbolizer_.FunctionAt(module, kText + 0x40), "hidden");
}

TEST_F(SymbolizerTest, ADebugFileOfAnotherBuildIsNotTaken) {
  ElfBuilder("\xab\xcd").WriteTo(folder_ / "a");
  std::filesystem::create_directories(folder_ / "debug/.build-id/ab");
  ElfBuilder("\xab\xce").Symbol("wrong", 0, 0x40).WriteTo(folder_ / "debug/.build-id/ab/cd.debug");
  EXPECT_EQ(symbolizer_.FunctionAt(symbolizer_.Module(folder_ / "a", "\xab\xcd"), kText),
            std::nullopt);
  ASSERT_EQ(symbolizer_.problems().size(), 1u);
  EXPECT_EQ(symbolizer_.problems()[0].kind, Kind::kNoSymbols);
}

}  // namespace
}  // namespace xpu
