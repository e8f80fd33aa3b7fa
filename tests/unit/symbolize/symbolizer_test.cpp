#include "symbolize/symbolizer.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "format/base/text.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::ElfBuilder;
using test::TempDirectory;
using Kind = FileProblem;
using Detail = ModuleSymbols::Detail;

class SymbolizerTest : public testing::Test {
 protected:
  SymbolizerTest() : symbolizer_(OptionsWith(Detail::kNames)) {}
  Symbolizer::Options OptionsWith(Detail detail) const {
    return {.files = {.symfs = {}, .debug_directories = {directory_ / "debug"}, .debuginfod = {}},
            .detail = detail,
            .threads = 4};
  }
  TempDirectory directory_;
  Symbolizer symbolizer_;
};

// "name+offset" of each frame, innermost first.
std::vector<std::string> Texts(std::span<const CodeFrame> frames) {
  std::vector<std::string> texts;
  for (const CodeFrame& frame : frames) {
    texts.emplace_back(frame.function);
    if (frame.offset) texts.back() += "+" + std::to_string(*frame.offset);
  }
  return texts;
}
using Expected = std::vector<std::string>;

TEST_F(SymbolizerTest, FileOffsetsThroughTheProgramHeaders) {
  ElfBuilder("id-1")
      .Symbol("first", 0, 0x40)
      .Symbol("second", 0x40, 0x40)
      .WriteTo(directory_ / "a");
  const ModuleId module = symbolizer_.Module(directory_ / "a", "id-1");
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset + 0x3f), "first");
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset + 0x40), "second");
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset + 0x80), std::nullopt);
  EXPECT_EQ(symbolizer_.FunctionAt(module, 0x10), std::nullopt);  // not in a segment
  EXPECT_TRUE(symbolizer_.problems().empty());
}

TEST_F(SymbolizerTest, OneIdForAFileAndBuild) {
  EXPECT_EQ(symbolizer_.Module("/a", "1"), symbolizer_.Module("/a", "1"));
  EXPECT_NE(symbolizer_.Module("/a", "1"), symbolizer_.Module("/a", "2"));
  EXPECT_NE(symbolizer_.Module("/a", "1"), symbolizer_.Module("/b", "1"));
}

TEST_F(SymbolizerTest, AnotherBuildIsRefusedAndNamedOnce) {
  ElfBuilder("new").Symbol("wrong", 0, 0x40).WriteTo(directory_ / "a");
  const ModuleId module = symbolizer_.Module(directory_ / "a", "old");
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset), std::nullopt);
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset + 1), std::nullopt);
  ASSERT_EQ(symbolizer_.problems().size(), 1u);
  EXPECT_EQ(symbolizer_.problems()[0].kind, Kind::kMismatch);
  EXPECT_EQ(symbolizer_.problems()[0].message,
            directory_ / "a" + ": not the recorded file: build-id 6e6577, recorded 6f6c64");
}

TEST_F(SymbolizerTest, WithoutARecordedBuildIdThePathIsBelieved) {
  ElfBuilder("any").Symbol("f", 0, 0x40).WriteTo(directory_ / "a");
  EXPECT_EQ(
      symbolizer_.FunctionAt(symbolizer_.Module(directory_ / "a", ""), ElfBuilder::kTextOffset),
      "f");
}

TEST_F(SymbolizerTest, MissingAndUnreadableFiles) {
  std::ofstream(directory_ / "script")
      << "#!/bin/sh\n# this is longer than the header of ELF files\n";
  EXPECT_EQ(symbolizer_.FunctionAt(symbolizer_.Module(directory_ / "none", "x"), 0), std::nullopt);
  EXPECT_EQ(symbolizer_.FunctionAt(symbolizer_.Module(directory_ / "script", ""), 0), std::nullopt);
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
  ElfBuilder("\xab\xcd").DynamicSymbol("exported", 0, 0x40).WriteTo(directory_ / "a");
  std::filesystem::create_directories(directory_ / "debug/.build-id/ab");
  ElfBuilder("\xab\xcd")
      .Symbol("hidden", 0x40, 0x40)
      .WriteTo(directory_ / "debug/.build-id/ab/cd.debug");
  const ModuleId module = symbolizer_.Module(directory_ / "a", "\xab\xcd");
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset), "exported");
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset + 0x40), "hidden");
}

TEST_F(SymbolizerTest, ADebugFileOfAnotherBuildIsNotTaken) {
  ElfBuilder("\xab\xcd").WriteTo(directory_ / "a");
  std::filesystem::create_directories(directory_ / "debug/.build-id/ab");
  ElfBuilder("\xab\xce")
      .Symbol("wrong", 0, 0x40)
      .WriteTo(directory_ / "debug/.build-id/ab/cd.debug");
  EXPECT_EQ(symbolizer_.FunctionAt(symbolizer_.Module(directory_ / "a", "\xab\xcd"),
                                   ElfBuilder::kTextOffset),
            std::nullopt);
  ASSERT_EQ(symbolizer_.problems().size(), 1u);
  EXPECT_EQ(symbolizer_.problems()[0].kind, Kind::kMismatch);
  EXPECT_EQ(symbolizer_.problems()[0].message,
            directory_ / "debug/.build-id/ab/cd.debug" +
                ": not the recorded file: build-id abce, recorded abcd");
}

// What the capture has counts before what the machine has; the file helps where the slice is mute.
TEST_F(SymbolizerTest, TheSliceComesFirstAndTheFileFillsUp) {
  ElfBuilder("id-1")
      .Symbol("of_file", 0, 0x40)
      .Symbol("rest", 0x40, 0x40)
      .WriteTo(directory_ / "a");
  const std::string slice = ElfBuilder("id-1").Symbol("of_slice", 0, 0x40).Build();
  const ModuleId module = symbolizer_.Module(directory_ / "a", "id-1");
  symbolizer_.SetSlice(module, {slice});
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset), "of_slice");
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset + 0x40), "rest");
  EXPECT_TRUE(symbolizer_.problems().empty());
}

TEST_F(SymbolizerTest, ASliceInPartsNamesAFileThatIsNotThere) {
  const std::string slice = ElfBuilder("id-1").Symbol("f", 0x10, 0x40).Build();
  const ModuleId module = symbolizer_.Module("/nowhere/a", "id-1");
  symbolizer_.SetSlice(
      module, {std::string_view(slice).substr(0, 100), std::string_view(slice).substr(100)});
  EXPECT_EQ(Texts(symbolizer_.FramesAt(module, ElfBuilder::kTextOffset + 0x15)), Expected{"f+5"});
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset + 0x80), std::nullopt);
  EXPECT_TRUE(symbolizer_.problems().empty());  // the names of the capture are all there
}

// As those of the parts of one recording, each with the functions that occur in it.
TEST_F(SymbolizerTest, OlderSlicesFillUpBeforeTheFile) {
  ElfBuilder("id-1").Symbol("of_file", 0, 0x100).WriteTo(directory_ / "a");
  const std::string first = ElfBuilder("id-1").Symbol("one", 0, 0x40).Build();
  const std::string second =
      ElfBuilder("id-1").Symbol("not_one", 0, 0x40).Symbol("two", 0x40, 0x40).Build();
  const std::string third = ElfBuilder("id-1").Symbol("three", 0x80, 0x40).Build();
  const ModuleId module = symbolizer_.Module(directory_ / "a", "id-1");
  symbolizer_.SetSlice(module, {third}, {{first}, {"no ELF image"}, {second}});
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset + 0x80), "three");
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset + 0x40), "two");
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset),
            "not_one");  // the newer one counts
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset + 0xc0), "of_file");
  // One that cannot be read leaves the others.
  const ModuleId other = symbolizer_.Module("/nowhere/b", "id-1");
  symbolizer_.SetSlice(other, {"no ELF image"}, {{first}});
  EXPECT_EQ(symbolizer_.FunctionAt(other, ElfBuilder::kTextOffset), "one");
}

TEST_F(SymbolizerTest, TheVdsoHasASlice) {
  const std::string slice = ElfBuilder("v").Symbol("__vdso_time", 0, 0x40).Build();
  const ModuleId module = symbolizer_.Module("[vdso]", "");
  symbolizer_.SetSlice(module, {slice});
  EXPECT_EQ(symbolizer_.FunctionAt(module, ElfBuilder::kTextOffset), "__vdso_time");
}

TEST_F(SymbolizerTest, ADamagedSliceIsReportedAndTheFileIsUsed) {
  ElfBuilder("id-1").Symbol("f", 0, 0x40).WriteTo(directory_ / "a");
  const ModuleId garbage = symbolizer_.Module(directory_ / "a", "id-1");
  symbolizer_.SetSlice(garbage,
                       {"this is not an ELF image, however long it may be: it has no end"});
  EXPECT_EQ(symbolizer_.FunctionAt(garbage, ElfBuilder::kTextOffset), "f");
  const ModuleId other = symbolizer_.Module("/nowhere/b", "id-2");
  const std::string slice = ElfBuilder("id-3").Symbol("wrong", 0, 0x40).Build();
  symbolizer_.SetSlice(other, {slice});
  EXPECT_EQ(symbolizer_.FunctionAt(other, ElfBuilder::kTextOffset), std::nullopt);
  ASSERT_EQ(symbolizer_.problems().size(), 2u);
  EXPECT_EQ(symbolizer_.problems()[0].kind, Kind::kSlice);
  EXPECT_EQ(symbolizer_.problems()[1].kind, Kind::kSlice);
  EXPECT_EQ(
      symbolizer_.problems()[1].message,
      "/nowhere/b: its slice is from a different build: build-id 69642d33, recorded 69642d32");
}

// The batch and the single look-ups give the same; files are read by several threads.
TEST_F(SymbolizerTest, AllThatIsWantedInOneGo) {
  std::vector<ModuleId> modules;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "file" + std::to_string(i);
    ElfBuilder("id-" + name).Symbol(name, 0, 0x100).WriteTo(directory_ / name);
    modules.push_back(symbolizer_.Module(directory_ / name, "id-" + name));
    for (uint64_t at = 0; at < 0x100; at += 0x10)
      symbolizer_.Want(modules.back(), ElfBuilder::kTextOffset + at);
    symbolizer_.Want(modules.back(), ElfBuilder::kTextOffset);
  }
  EXPECT_EQ(symbolizer_.Wanted(modules[3]).size(), 16u);
  symbolizer_.ResolveRequested();
  EXPECT_TRUE(symbolizer_.Wanted(modules[3]).empty());
  for (int i = 0; i < 20; ++i) std::filesystem::remove(directory_ / ("file" + std::to_string(i)));
  EXPECT_EQ(Texts(symbolizer_.FramesAt(modules[7], ElfBuilder::kTextOffset + 0xf0)),
            Expected{"file7+240"});
  EXPECT_TRUE(symbolizer_.problems().empty());
  EXPECT_TRUE(symbolizer_.FramesAt(modules[7], ElfBuilder::kTextOffset + 0xf8)
                  .empty());  // the file is opened again
  EXPECT_EQ(symbolizer_.problems().size(), 1u);
}

// ---- lines and inlined functions, of a program made for it --------------------------------------

// The first offset in Outermost whose frames are these.
std::optional<std::vector<CodeFrame>> FindFrames(Symbolizer& symbolizer, ModuleId module,
                                                 const Expected& functions) {
  const ElfFile file = ElfFile::Open(XPU_INLINED_PUPPET).value();
  for (const ElfSymbol& symbol : file.image().CodeSymbols()) {
    if (symbol.name != "_Z9Outermosti") continue;
    const uint64_t start = file.image().FileOffsetOf(symbol.link_address).value();
    for (uint64_t at = start; at < start + symbol.size_bytes; ++at) {
      const auto frames = symbolizer.FramesAt(module, at);
      Expected found;
      for (const CodeFrame& frame : frames) found.emplace_back(frame.function);
      if (found == functions) return std::vector<CodeFrame>(frames.begin(), frames.end());
    }
  }
  return std::nullopt;
}

TEST_F(SymbolizerTest, InlinedFunctionsAndLines) {
  Symbolizer symbolizer(OptionsWith(Detail::kInlines));
  const ModuleId module = symbolizer.Module(XPU_INLINED_PUPPET, "");
  const auto frames =
      FindFrames(symbolizer, module, {"_Z9Innermosti", "_Z6Middlei", "_Z9Outermosti"});
  ASSERT_TRUE(frames.has_value());
  std::vector<bool> inlined;
  std::vector<uint32_t> lines;
  for (const CodeFrame& frame : *frames) {
    inlined.push_back(frame.is_inlined);
    lines.push_back(frame.line);
    EXPECT_TRUE(frame.file.ends_with("/inlined_puppet.cpp")) << frame.file;
  }
  EXPECT_EQ(inlined, (std::vector<bool>{true, true, false}));
  EXPECT_EQ(lines[0], 4u);
  EXPECT_TRUE(lines[1] == 6 || lines[1] == 7) << lines[1];
  EXPECT_EQ(lines[2], 11u);
  EXPECT_FALSE((*frames)[0].offset.has_value());
  EXPECT_TRUE((*frames)[2].offset.has_value());
  EXPECT_EQ(symbolizer.files_without_lines(), 0u);
}

// Without --inline: the line in the function itself, not in what was inlined into it.
TEST_F(SymbolizerTest, LinesWithoutInlinedFunctions) {
  Symbolizer symbolizer(OptionsWith(Detail::kLines));
  const ModuleId module = symbolizer.Module(XPU_INLINED_PUPPET, "");
  const auto frames = FindFrames(symbolizer, module, {"_Z9Outermosti"});
  ASSERT_TRUE(frames.has_value());
  EXPECT_TRUE(frames->front().line >= 10 && frames->front().line <= 13) << frames->front().line;
  EXPECT_FALSE(frames->front().is_inlined);
}

// The program without its symbols, and its debug information where distributions put it.
class SeparateDebugFileTest : public SymbolizerTest {
 protected:
  static bool Run(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
  }
  std::string app() const { return directory_ / "app"; }
  // The three functions, innermost first, and their lines.
  void ExpectInlines() {
    Symbolizer symbolizer(OptionsWith(Detail::kInlines));
    const auto frames = FindFrames(symbolizer, symbolizer.Module(app(), build_id_),
                                   {"_Z9Innermosti", "_Z6Middlei", "_Z9Outermosti"});
    ASSERT_TRUE(frames.has_value());
    EXPECT_EQ(frames->front().line, 4u);
    EXPECT_TRUE(symbolizer.problems().empty());
  }
  std::string TreeFile() const {
    const std::string hex = ToHex(build_id_);
    std::filesystem::create_directories(directory_ / "debug/.build-id/" + hex.substr(0, 2));
    return directory_ / "debug/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug";
  }

  const std::string build_id_ = ReadBuildId(XPU_INLINED_PUPPET).value();
};

TEST_F(SeparateDebugFileTest, InATreeOfBuildIds) {
  if (!Run("objcopy --version")) GTEST_SKIP() << "there is no objcopy";
  ASSERT_TRUE(Run("objcopy --only-keep-debug " XPU_INLINED_PUPPET " " + TreeFile()));
  ASSERT_TRUE(Run("objcopy --strip-all " XPU_INLINED_PUPPET " " + app()));
  ExpectInlines();
}

TEST_F(SeparateDebugFileTest, CompressedAndNamedByTheProgram) {
  if (!Run("objcopy --version")) GTEST_SKIP() << "there is no objcopy";
  ASSERT_TRUE(Run("objcopy --only-keep-debug --compress-debug-sections=zlib " XPU_INLINED_PUPPET
                  " " +
                  directory_ / "app.debug"));
  ASSERT_TRUE(Run("objcopy --strip-all --add-gnu-debuglink=" + directory_ / "app.debug" +
                  " " XPU_INLINED_PUPPET " " + app()));
  ExpectInlines();
}

TEST_F(SeparateDebugFileTest, WithPartsMovedAwayByDwz) {
  if (!Run("dwz --version")) GTEST_SKIP() << "there is no dwz";
  std::filesystem::copy_file(XPU_INLINED_PUPPET, app());
  std::filesystem::copy_file(XPU_INLINED_PUPPET, directory_ / "app2");
  if (!Run("cd " + directory_.path() + " && dwz -m shared.dwz app app2")) {
    GTEST_SKIP() << "dwz found nothing to share";
  }
  ExpectInlines();
}

TEST_F(SymbolizerTest, AFileWithoutDebugInformationIsCountedAndNamed) {
  ElfBuilder("id-1").Symbol("f", 0, 0x40).WriteTo(directory_ / "a");
  Symbolizer symbolizer(OptionsWith(Detail::kInlines));
  EXPECT_EQ(
      symbolizer.FunctionAt(symbolizer.Module(directory_ / "a", "id-1"), ElfBuilder::kTextOffset),
      "f");
  EXPECT_EQ(symbolizer.files_without_lines(), 1u);
  EXPECT_TRUE(symbolizer.problems().empty());
}

}  // namespace
}  // namespace xpu
