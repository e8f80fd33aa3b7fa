#include "report/symbols/symbol_export.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/file.h"
#include "report/cli/report_options.h"
#include "report/cli/run.h"
#include "report/model/load.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::ElfBuilder;

constexpr char kBuildId[] = "\xab\xcd\xef";

class SymbolExportTest : public testing::Test {
 protected:
  void AddSlice(test::ModelBuilder& builder, std::string_view path, std::string_view build_id,
                std::string_view bytes) {
    builder.Text("[lost]");  // has the id that captures keep for it
    SymbolSlice slice;
    slice.path = builder.Text(path);
    slice.build_id = builder.Text(build_id);
    slice.detail = SymbolDetail::kNames;
    slice.part_count = 1;
    slice.bytes = builder.Text(bytes);
    builder.events.symbol_slices.push_back(slice);
  }
  Result<std::string> Export(test::ModelBuilder& builder) {
    return ExportSymbols(Analysis(builder.Build()), directory_ / "out");
  }
  std::string Read(const std::string& name) { return ReadFile(directory_ / name).value(); }

  // A capture of one sample in f of a file that is there.
  void WriteCapture() {
    ElfBuilder(kBuildId)
        .Symbol("f", 0, 0x40)
        .Symbol("not_hit", 0x40, 0x40)
        .WriteTo(directory_ / "app");
    test::ModelBuilder builder;
    builder.Source(1000);
    builder.Process(ProcessEventKind::kExisting, 1, 5, 5, "app");
    builder.Map(1, 5, 0x10000, 0x1000, ElfBuilder::kTextOffset, directory_ / "app", kBuildId);
    builder.Sample(10, 5, 5, builder.Stack({0x10010}));
    builder.End(20);
    ASSERT_TRUE(builder.WriteCapture(directory_ / "capture.xpu").ok());
    ASSERT_EQ(::chmod((directory_ / "capture.xpu").c_str(), 0600), 0);
  }
  // A view: the folded stacks.
  Status Run(Task task, const std::string& output) {
    ReportOptions options;
    options.captures = {capture_.empty() ? directory_ / "capture.xpu" : capture_};
    options.output = output;
    options.task = task;
    options.view = &FindView("--folded");
    outcome_ = {};
    return RunReport(options, outcome_);
  }

  test::TempDirectory directory_;
  std::string capture_;
  ReportOutcome outcome_;
};

TEST_F(SymbolExportTest, ATreeOfBuildIds) {
  const std::string image = ElfBuilder(kBuildId).Symbol("f", 0, 0x40).Build();
  const auto build = [&](test::ModelBuilder& builder) {
    AddSlice(builder, "/app", kBuildId, image);
    AddSlice(builder, "/copy/of/app", kBuildId, ElfBuilder(kBuildId).Build());  // has less
    AddSlice(builder, "/no-id", "", ElfBuilder("").Build());
    AddSlice(builder, "/damaged", "\x01\x02", "no ELF image");
  };
  test::ModelBuilder first;
  build(first);
  const Result<std::string> done = Export(first);
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done.value(), "1 of 1 file written to " + directory_ / "out" +
                              "/.build-id\n  1 file has no build-id and is left out\n");
  EXPECT_TRUE(Read("out/.build-id/ab/cdef.debug") == image);
  test::ModelBuilder again;
  build(again);
  EXPECT_EQ(
      Export(again).value(),
      "0 of 1 file written to " + directory_ / "out" +
          "/.build-id\n  the others exist already\n  1 file has no build-id and is left out\n");
}

TEST_F(SymbolExportTest, NothingIsOverwritten) {
  std::filesystem::create_directories(directory_ / "out/.build-id/ab");
  std::ofstream(directory_ / "out/.build-id/ab/cdef.debug") << "precious";
  test::ModelBuilder builder;
  AddSlice(builder, "/app", kBuildId, ElfBuilder(kBuildId).Build());
  AddSlice(builder, "/other", "\x12\x34", ElfBuilder("\x12\x34").Build());
  const Result<std::string> done = Export(builder);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().kind, ErrorKind::kSystem);
  EXPECT_EQ(done.error().message, directory_ / "out/.build-id/ab/cdef.debug" +
                                      ": a different file exists (as for 0 others) and is not "
                                      "overwritten; 1 of 2 files were written");
  EXPECT_NE(Read("out/.build-id/12/34.debug"), "");
  EXPECT_EQ(Read("out/.build-id/ab/cdef.debug"), "precious");
}

TEST_F(SymbolExportTest, NothingIsWrittenThroughALink) {
  std::filesystem::create_directories(directory_ / "out/.build-id/ab");
  std::filesystem::create_symlink(directory_ / "nothing",
                                  directory_ / "out/.build-id/ab/cdef.debug");
  test::ModelBuilder builder;
  AddSlice(builder, "/app", kBuildId, ElfBuilder(kBuildId).Build());
  EXPECT_FALSE(Export(builder).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "nothing"));
}

TEST_F(SymbolExportTest, RootExportsThroughNoLinkOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives links away";
  ASSERT_EQ(::unsetenv("SUDO_UID"), 0);
  std::filesystem::create_directories(directory_ / "out");
  std::filesystem::create_directories(directory_ / "elsewhere");
  std::filesystem::create_symlink(directory_ / "elsewhere", directory_ / "out/.build-id");
  ASSERT_EQ(::lchown((directory_ / "out/.build-id").c_str(), 65534, 65534), 0);
  test::ModelBuilder builder;
  AddSlice(builder, "/app", kBuildId, ElfBuilder(kBuildId).Build());
  const Result<std::string> done = Export(builder);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message,
            directory_ / "out/.build-id" + ": .build-id is a symbolic link created by user 65534");
  EXPECT_TRUE(std::filesystem::is_empty(directory_ / "elsewhere"));
}

TEST_F(SymbolExportTest, NothingTakesThePlaceOfALink) {
  WriteCapture();
  std::filesystem::create_symlink(directory_ / "capture.xpu", directory_ / "link");
  const Status status = Run(Task::kEmbedSymbols, directory_ / "link");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, directory_ / "link: not a regular file");
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ / "link"));
}

TEST_F(SymbolExportTest, EmbeddedSymbolsTravel) {
  WriteCapture();
  ASSERT_TRUE(Run(Task::kEmbedSymbols, "").ok());
  EXPECT_NE(outcome_.notes.find("symbols of 1 file added to "), std::string::npos);
  struct stat info {};
  ASSERT_EQ(::stat((directory_ / "capture.xpu").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  std::filesystem::remove(directory_ / "app");

  const Model model = LoadCapture(directory_ / "capture.xpu").value();
  EXPECT_EQ(model.problems.blocks_damaged, 0u);
  EXPECT_EQ(model.problems.bytes_skipped, 0u);
  ASSERT_EQ(model.events.symbol_slices.size(), 1u);
  EXPECT_EQ(model.Text(model.events.symbol_slices[0].path), directory_ / "app");
  ASSERT_TRUE(Run(Task::kView, directory_ / "folded").ok());
  EXPECT_EQ(Read("folded"), "app;f 1\n");
  EXPECT_EQ(outcome_.notes, "");
  // Nothing is left beside it.
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
    EXPECT_EQ(entry.path().string().find("capture.xpu."), std::string::npos) << entry.path();
  }
}

TEST_F(SymbolExportTest, EmbeddingAgainAddsNothing) {
  WriteCapture();
  ASSERT_TRUE(Run(Task::kEmbedSymbols, "").ok());
  const std::string once = Read("capture.xpu");
  ASSERT_TRUE(Run(Task::kEmbedSymbols, "").ok());
  EXPECT_NE(outcome_.notes.find("  1 file has its symbols already\n"), std::string::npos);
  EXPECT_TRUE(Read("capture.xpu") == once);
}

TEST_F(SymbolExportTest, IntoAnotherFileTheFirstStaysAsItIs) {
  WriteCapture();
  const std::string before = Read("capture.xpu");
  ASSERT_TRUE(Run(Task::kEmbedSymbols, directory_ / "full.xpu").ok());
  EXPECT_TRUE(Read("capture.xpu") == before);
  EXPECT_TRUE(Read("full.xpu").starts_with(before));
  EXPECT_EQ(LoadCapture(directory_ / "full.xpu").value().events.symbol_slices.size(), 1u);
}

// The recorder was killed: its last block is cut. What is added is read, losses are still reported.
TEST_F(SymbolExportTest, ACutCaptureIsContinued) {
  WriteCapture();
  std::string bytes = Read("capture.xpu");
  bytes += bytes.substr(bytes.find("\xb5xpuBLK\n"), 70);  // a repeated block, without its payload
  std::ofstream(directory_ / "capture.xpu", std::ios::binary) << bytes;
  ASSERT_TRUE(Run(Task::kEmbedSymbols, "").ok());
  const Model model = LoadCapture(directory_ / "capture.xpu").value();
  EXPECT_EQ(model.events.symbol_slices.size(), 1u);
  EXPECT_EQ(model.events.cpu_samples.size(), 1u);
  EXPECT_EQ(model.problems.bytes_skipped, 70u);
}

TEST_F(SymbolExportTest, FilesThatAreNotHereAreNamed) {
  WriteCapture();
  ElfBuilder("other").WriteTo(directory_ / "app");
  ASSERT_TRUE(Run(Task::kEmbedSymbols, "").ok());
  EXPECT_EQ(outcome_.notes, "symbols of 0 files added to " + directory_ / "capture.xpu" +
                                ", 0 bytes before compression\n  " + directory_ / "app" +
                                ": not the recorded file: build-id 6f74686572, recorded abcdef\n");
}

TEST_F(SymbolExportTest, WhatIsNoCaptureStays) {
  std::ofstream(directory_ / "capture.xpu") << "no capture";
  EXPECT_FALSE(Run(Task::kEmbedSymbols, "").ok());
  EXPECT_EQ(Read("capture.xpu"), "no capture");
}

}  // namespace
}  // namespace xpu
