#include <csignal>

#include <gtest/gtest.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "report/base/output.h"
#include "report/base/terminal.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

class PagerTest : public testing::Test {
 protected:
  // Everything that an output writes, by a pager that appends it to a file.
  std::string Paged(std::string_view text, size_t screen_rows) {
    Pager pager(Format("cat >> {}", directory_ / "paged"), screen_rows);
    const int fd = pager.FdFor(text);
    if (fd == STDOUT_FILENO) return "";
    EXPECT_TRUE(WriteAll(fd, text, "pager").ok());
    EXPECT_EQ(pager.FdFor("more"), fd);
    EXPECT_TRUE(pager.Finish());
    return ReadFile(directory_ / "paged").value();
  }

  test::TempDirectory directory_;
};

TEST_F(PagerTest, WhatFitsGoesToTheScreen) {
  EXPECT_EQ(Paged("a\nb\n", 3), "");
  EXPECT_EQ(Paged("a\nb\nc\n", 3), "a\nb\nc\n");  // the prompt takes a row
}

TEST_F(PagerTest, TheScreenFillsUp) {
  Pager pager("cat > /dev/null", 5);
  EXPECT_EQ(pager.FdFor("a\nb\n"), STDOUT_FILENO);
  EXPECT_EQ(pager.FdFor(""), STDOUT_FILENO);
  EXPECT_NE(pager.FdFor("c\nd\ne\n"), STDOUT_FILENO);
}

TEST_F(PagerTest, OneThatIsNotThereIsAnError) {
  std::signal(SIGPIPE, SIG_IGN);
  Output output = Output::Open("-").value();
  output.PageTo(Pager("exec /nonexistent/pager 2>/dev/null", 1));
  output.Write("text\n");
  const Status status = output.Close();
  ASSERT_FALSE(status.ok());
  EXPECT_FALSE(output.closed_by_reader());
}

TEST_F(PagerTest, LongLinesDoNotFit) {
  const std::string text(100'000, 'x');
  EXPECT_EQ(Paged(text, 24), text);
}

TEST_F(PagerTest, OneThatEndsEarlyIsAReaderThatClosesThePipe) {
  std::signal(SIGPIPE, SIG_IGN);
  Output output = Output::Open("-").value();
  output.PageTo(Pager("true", 2));
  for (int i = 0; i < 100'000 && !output.failed(); ++i) output.Write("some line of text\n");
  EXPECT_FALSE(output.Close().ok());
  EXPECT_TRUE(output.closed_by_reader());
}

TEST_F(PagerTest, NoneWithoutATerminal) {
  // Tests have none.
  if (::isatty(STDOUT_FILENO) == 1) GTEST_SKIP() << "standard output is a terminal";
  EXPECT_FALSE(Pager::ForTerminal().has_value());
}

}  // namespace
}  // namespace xpu
