#include "report/base/output.h"

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
  const test::TempDirectory directory;
  for (const char* text : {"a longer text\n", "short\n"}) {
    Output output = Output::Open(directory / "out").value();
    output.WriteBytes(text);
    EXPECT_TRUE(output.Close().ok());
  }
  EXPECT_EQ(ReadFile(directory / "out").value(), "short\n");
}

TEST(Output, CompressesByName) {
  const test::TempDirectory directory;
  Output output = Output::Open(directory / "out.gz").value();
  std::string expected;
  for (int i = 0; i < 100'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    output.WriteBytes(line);
    expected += line;
  }
  EXPECT_TRUE(output.Close().ok());
  const std::string command =
      "gzip -dc '" + (directory / "out.gz") + "' > '" + (directory / "out") + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(ReadFile(directory / "out").value(), expected);
  EXPECT_LT(ReadFile(directory / "out.gz").value().size(), expected.size() / 3);
}

TEST(Output, WhatCannotBeWritten) {
  const Result<Output> output = Output::Open("/nowhere/out");
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().ToString(),
            "/nowhere/out: cannot write: No such file or directory\n"
            "hint: its directory must exist: mkdir -p");
  EXPECT_EQ(Output::Open("/tmp").error().ToString(),
            "/tmp: cannot write: Is a directory\nhint: name a file, not a directory");
}

// Another user may exchange what lies in a directory that he may write to.
TEST(Output, RootFollowsLinksThatItMadeAndNoOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives links away";
  constexpr uid_t kOtherUser = 65534;
  ASSERT_EQ(::unsetenv("SUDO_UID"), 0);
  const test::TempDirectory directory;
  const auto content = [&] { return ReadFile(directory / "precious").value(); };
  const UniqueFd precious(::creat((directory / "precious").c_str(), 0600));
  ASSERT_TRUE(WriteAll(precious.get(), "content", "precious").ok());
  ASSERT_EQ(::symlink("precious", (directory / "link").c_str()), 0);
  ASSERT_EQ(::symlink(".", (directory / "folder").c_str()), 0);
  for (const char* link : {"link", "folder"}) {
    ASSERT_EQ(::lchown((directory / link).c_str(), kOtherUser, kOtherUser), 0);
  }
  EXPECT_EQ(Output::Open(directory / "link").error().message,
            directory / "link" + ": link is a symbolic link created by user 65534");
  EXPECT_EQ(Output::Open(directory / "folder/precious").error().message,
            directory / "folder/precious" + ": folder is a symbolic link created by user 65534");
  EXPECT_EQ(content(), "content");
  ASSERT_EQ(::lchown((directory / "link").c_str(), 0, 0), 0);
  EXPECT_TRUE(Output::Open(directory / "link").ok());
  EXPECT_EQ(content(), "");
}

TEST(Output, RootOverwritesNoFileThatAnotherUserPutIntoASharedDirectory) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::unsetenv("SUDO_UID"), 0);
  const test::TempDirectory directory;
  const UniqueFd theirs(::creat((directory / "theirs").c_str(), 0666));
  ASSERT_EQ(::fchown(theirs.get(), 65534, 65534), 0);
  EXPECT_EQ(Output::Open(directory / "theirs").error().message,
            directory / "theirs" + ": user 65534 created it in another user's directory");
}

TEST(Output, AFullDisk) {
  Output output = Output::Open("/dev/full").value();
  output.Write("text");
  const Status status = output.Close();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().ToString(),
            "/dev/full: write: No space left on device\n"
            "hint: the disk is full: free some space, or write to another disk");
  EXPECT_FALSE(output.closed_by_reader());
}

TEST(Output, AReaderThatGoesAway) {
  std::signal(SIGPIPE, SIG_IGN);
  const test::TempDirectory directory;
  const std::string path = directory / "pipe";
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
