#include "report/output.h"

#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/file.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

TEST(Output, ReplacesAFile) {
  const test::TempFolder folder;
  for (const char* text : {"a longer text\n", "short\n"}) {
    Output output = Output::Open(folder / "out").value();
    output.Write(text);
    EXPECT_TRUE(output.Close().ok());
  }
  EXPECT_EQ(ReadFile(folder / "out").value(), "short\n");
}

TEST(Output, CompressesByName) {
  const test::TempFolder folder;
  Output output = Output::Open(folder / "out.gz").value();
  std::string expected;
  for (int i = 0; i < 100'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    output.Write(line);
    expected += line;
  }
  EXPECT_TRUE(output.Close().ok());
  const std::string command = "gzip -dc '" + (folder / "out.gz") + "' > '" + (folder / "out") + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(ReadFile(folder / "out").value(), expected);
  EXPECT_LT(ReadFile(folder / "out.gz").value().size(), expected.size() / 3);
}

TEST(Output, WhatCannotBeWritten) {
  const Result<Output> output = Output::Open("/nowhere/out");
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().ToString(),
            "/nowhere/out: cannot write: No such file or directory\n"
            "hint: its folder must be there: mkdir -p");
  EXPECT_EQ(Output::Open("/tmp").error().ToString(),
            "/tmp: cannot write: Is a directory\nhint: name a file, not a folder");
}

TEST(Output, AFullDisk) {
  Output output = Output::Open("/dev/full").value();
  output.Write("text");
  const Status status = output.Close();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().ToString(),
            "/dev/full: write: No space left on device\n"
            "hint: the disk is full: make room, or write to another one");
  EXPECT_FALSE(output.closed_by_reader());
}

TEST(Output, AReaderThatGoesAway) {
  std::signal(SIGPIPE, SIG_IGN);
  const test::TempFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK));
  Output output = Output::Open(path).value();
  reader.reset();
  output.Write("text");
  EXPECT_FALSE(output.Close().ok());
  EXPECT_TRUE(output.closed_by_reader());
}

}  // namespace
}  // namespace xpu
