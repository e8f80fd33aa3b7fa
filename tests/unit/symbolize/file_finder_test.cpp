#include "symbolize/file_finder.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::ElfBuilder;
using test::TempDirectory;

class FileFinderTest : public testing::Test {
 protected:
  FileFinder Finder() const {
    return FileFinder({.symfs = directory_ / "symfs",
                       .debug_directories = {directory_ / "debug", directory_ / "more"},
                       .debuginfod = debuginfod_});
  }
  void WriteElf(const std::string& path, std::string_view build_id) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    ElfBuilder(build_id).Symbol("f", 0, 0x40).WriteTo(path);
  }
  void WriteScript(const std::string& path, const std::string& text) {
    std::ofstream(path) << "#!/bin/sh\n" << text;
    ::chmod(path.c_str(), 0755);
  }
  static std::string PathOf(const FileSearch& search) {
    return search.found ? search.found->path : "";
  }

  TempDirectory directory_;
  std::shared_ptr<Debuginfod> debuginfod_;
};

constexpr std::string_view kId = "\xab\xcd\xef";

TEST_F(FileFinderTest, ProgramsInTheOrderOfPlaces) {
  const std::string tree = directory_ / "more/.build-id/ab/cdef";
  WriteElf(tree, kId);
  EXPECT_EQ(PathOf(Finder().Program("/no/app", kId)), tree);
  const std::string flat = directory_ / "debug/ab/cdef";
  WriteElf(flat, kId);
  EXPECT_EQ(PathOf(Finder().Program("/no/app", kId)), flat);
  const std::string below = directory_ / "symfs/no/app";
  WriteElf(below, kId);
  EXPECT_EQ(PathOf(Finder().Program("/no/app", kId)), below);
  EXPECT_EQ(PathOf(Finder().Program("/no/app (deleted)", kId)), below);
  const std::string itself = directory_ / "app";
  WriteElf(itself, kId);
  EXPECT_EQ(PathOf(Finder().Program(itself, kId)), itself);
}

TEST_F(FileFinderTest, AnotherBuildIsRefusedAndBothIdsAreNamed) {
  WriteElf(directory_ / "app", "\x01\x02");
  const FileSearch search = Finder().Program(directory_ / "app", kId);
  EXPECT_FALSE(search.found.has_value());
  EXPECT_EQ(search.problem, FileProblem::kMismatch);
  EXPECT_EQ(search.message,
            directory_ / "app" + ": not the recorded file: build-id 0102, recorded abcdef");
  // Where an equal one is elsewhere, nothing is said.
  WriteElf(directory_ / "debug/.build-id/ab/cdef", kId);
  EXPECT_TRUE(Finder().Program(directory_ / "app", kId).found.has_value());
}

TEST_F(FileFinderTest, AFifoIsNotOpened) {
  ASSERT_EQ(::mkfifo((directory_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(Finder().Program(directory_ / "fifo", "").problem, FileProblem::kUnreadable);
  EXPECT_EQ(Finder().Program(directory_ / "none", "").problem, FileProblem::kMissing);
}

TEST_F(FileFinderTest, DebugFilesInTreesOfBuildIds) {
  EXPECT_FALSE(Finder().Debug("/no/app", kId, nullptr).found.has_value());
  EXPECT_EQ(Finder().Debug("/no/app", kId, nullptr).problem, FileProblem::kNone);
  const std::string flat = directory_ / "more/ab/cdef.debug";
  WriteElf(flat, kId);
  EXPECT_EQ(PathOf(Finder().Debug("/no/app", kId, nullptr)), flat);
  const std::string tree = directory_ / "debug/.build-id/ab/cdef.debug";
  WriteElf(tree, "\xab\xcd\xee");
  EXPECT_EQ(PathOf(Finder().Debug("/no/app", kId, nullptr)), flat);
  WriteElf(tree, kId);
  EXPECT_EQ(PathOf(Finder().Debug("/no/app", kId, nullptr)), tree);
}

// The program and its debug file, made by the tools that distributions use.
TEST_F(FileFinderTest, DebugLinks) {
  const std::string app = directory_ / "bin/app";
  std::filesystem::create_directories(directory_ / "bin");
  std::filesystem::copy_file(XPU_INLINED_PUPPET, app);
  const std::string debug = directory_ / "bin/app.debug";
  const auto run = [](const std::string& command) { return std::system(command.c_str()); };
  if (run("objcopy --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no objcopy";
  ASSERT_EQ(run("objcopy --only-keep-debug " + app + " " + debug), 0);
  ASSERT_EQ(run("objcopy --strip-all --add-gnu-debuglink=" + debug + " " + app), 0);
  const ElfFile program = ElfFile::Open(app).value();
  const std::string id(program.image().build_id());
  const auto find = [&](std::string_view build_id) {
    return PathOf(Finder().Debug(app, build_id, &program.image()));
  };
  EXPECT_EQ(find(id), debug);
  EXPECT_EQ(find(""), debug);  // by the checksum
  EXPECT_EQ(find(kId), "");
  std::filesystem::create_directories(directory_ / "bin/.debug");
  std::filesystem::rename(debug, directory_ / "bin/.debug/app.debug");
  EXPECT_EQ(find(id), directory_ / "bin/.debug/app.debug");
  std::filesystem::create_directories(directory_ / "debug" + directory_ / "bin");
  std::filesystem::rename(directory_ / "bin/.debug/app.debug",
                          directory_ / "debug" + directory_ / "bin/app.debug");
  EXPECT_EQ(find(id), directory_ / "debug" + directory_ / "bin/app.debug");
  std::ofstream(directory_ / "debug" + directory_ / "bin/app.debug", std::ios::app) << "changed";
  EXPECT_EQ(find(""), "");
}

TEST_F(FileFinderTest, DebuginfodIsAskedLast) {
  std::vector<std::string> said;
  WriteScript(directory_ / "find",
              "echo $1 $2 >>" + directory_ / "asked\necho " + directory_ / "cache\n");
  debuginfod_ = std::make_shared<Debuginfod>(
      Debuginfod::Options{.program = directory_ / "find",
                          .progress = [&](std::string_view line) { said.emplace_back(line); },
                          .problem = [&](std::string_view line) { said.emplace_back(line); }});
  EXPECT_EQ(Finder().Program("/no/app", kId).problem, FileProblem::kMissing);
  WriteElf(directory_ / "cache", kId);
  EXPECT_EQ(PathOf(Finder().Program("/no/app", kId)), directory_ / "cache");
  EXPECT_EQ(PathOf(Finder().Debug("/no/app", kId, nullptr)), directory_ / "cache");
  WriteElf(directory_ / "cache", "\x01\x02");
  EXPECT_EQ(Finder().Program("/no/app", kId).problem, FileProblem::kMismatch);
  std::ifstream asked(directory_ / "asked");
  std::string line;
  std::getline(asked, line);
  EXPECT_EQ(line, "executable abcdef");
  ASSERT_EQ(said.size(), 4u);
  EXPECT_EQ(said[2], "debuginfod: requesting debuginfo of /no/app");
}

TEST_F(FileFinderTest, DebuginfodHasALimitForAllQuestions) {
  std::vector<std::string> said;
  WriteScript(directory_ / "find", "sleep 100\n");
  debuginfod_ = std::make_shared<Debuginfod>(
      Debuginfod::Options{.program = directory_ / "find",
                          .time_limit = std::chrono::milliseconds(50),
                          .progress = [&](std::string_view line) { said.emplace_back(line); },
                          .problem = [&](std::string_view line) { said.emplace_back(line); }});
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Finder().Program("/no/app", kId).found.has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50));
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[1],
            "debuginfod: the time limit is reached; the remaining files are not requested");
}

// What a server sends without end. The limit comes just after the program's start.
TEST_F(FileFinderTest, DebuginfodHasALimitForAFile) {
  WriteScript(directory_ / "find",
              "while [ \"$(ulimit -f)\" = unlimited ]; do sleep 0.01; done\n"
              "exec dd if=/dev/zero of=" +
                  directory_ / "cache bs=4096 count=1000\n");
  debuginfod_ = std::make_shared<Debuginfod>(
      Debuginfod::Options{.program = directory_ / "find", .most_bytes = 8192});
  EXPECT_FALSE(Finder().Program("/no/app", kId).found.has_value());
  EXPECT_LE(std::filesystem::file_size(directory_ / "cache"), 8192u);
}

// It removes what it has received of a file if it ends by itself, before it would be killed, also
// where the file becomes too large.
TEST_F(FileFinderTest, DebuginfodEndsByItself) {
  WriteScript(directory_ / "find",
              "while [ \"$(ulimit -f)\" = unlimited ]; do sleep 0.01; done\n"
              "dd if=/dev/zero of=" +
                  directory_ / "part bs=4096 count=1000\necho $? $DEBUGINFOD_MAXTIME >" +
                  directory_ / "end\n");
  for (const char* own : {"", "7", "70"}) {
    ::setenv("DEBUGINFOD_MAXTIME", own, 1);
    debuginfod_ = std::make_shared<Debuginfod>(
        Debuginfod::Options{.program = directory_ / "find", .most_bytes = 8192});
    EXPECT_FALSE(Finder().Program("/no/app", kId).found.has_value());
    std::ifstream end(directory_ / "end");
    std::string line;
    std::getline(end, line);
    EXPECT_EQ(line, std::string("1 ") + (std::string(own) == "7" ? "7" : "28"));
  }
  ::unsetenv("DEBUGINFOD_MAXTIME");
}

TEST_F(FileFinderTest, ADebuginfodThatCannotBeRunIsReportedOnce) {
  std::vector<std::string> said;
  debuginfod_ = std::make_shared<Debuginfod>(
      Debuginfod::Options{.program = "/none/find",
                          .progress = [&](std::string_view line) { said.emplace_back(line); },
                          .problem = [&](std::string_view line) { said.emplace_back(line); }});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Finder().Program("/no/app", kId).problem, FileProblem::kMissing);
  }
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[1], "debuginfod: cannot run /none/find: install it (debuginfod, elfutils)");
}

}  // namespace
}  // namespace xpu
