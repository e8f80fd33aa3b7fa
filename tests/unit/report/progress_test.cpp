#include <array>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "format/base/handle.h"
#include "report/base/output.h"
#include "report/base/terminal.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using std::chrono::milliseconds;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    read_end = UniqueFd(ends[0]);
    write_end = UniqueFd(ends[1]);
  }
  // Until nobody can write any more.
  std::string All() {
    write_end.reset();
    std::string text;
    std::array<char, 256> part{};
    for (ssize_t n = 0; (n = ::read(read_end.get(), part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<size_t>(n));
    }
    return text;
  }
  // The first `bytes` that come.
  std::string First(size_t bytes) {
    std::string text(bytes, '\0');
    size_t got = 0;
    while (got < bytes) {
      const ssize_t n = ::read(read_end.get(), text.data() + got, bytes - got);
      if (n <= 0) break;
      got += static_cast<size_t>(n);
    }
    return text;
  }
  UniqueFd read_end;
  UniqueFd write_end;
};

TEST(Progress, ShowsALineAndErasesIt) {
  Pipe pipe;
  {
    Progress progress(pipe.write_end.get(), milliseconds(0));
    progress.Begin("reading x.xpu");
    progress.Set(1, 4);
    const std::string line = "\r\x1b[Kxpu-report: reading x.xpu";
    EXPECT_EQ(pipe.First(line.size()), line);
  }
  EXPECT_TRUE(pipe.All().ends_with("\r\x1b[K"));
}

TEST(Progress, ShortWorkShowsNothing) {
  Pipe pipe;
  {
    Progress progress(pipe.write_end.get(), milliseconds(1'000'000));
    progress.Begin("reading x.xpu");
    progress.Stop();
    progress.Begin("writing");  // after it has stopped: nothing
  }
  EXPECT_EQ(pipe.All(), "");
}

TEST(Progress, ALongOutputSaysWhatItComesTo) {
  Pipe pipe;
  const test::TempDirectory directory;
  auto output = Output::Open(directory / "out.txt");
  ASSERT_TRUE(output.ok());
  {
    Progress progress(pipe.write_end.get(), milliseconds(0));
    output->ShowOn(progress);
    const std::string line(1023, 'x');
    for (uint64_t i = 1; i <= 4096; ++i) {
      output->WriteBytes(line + "\n");
      output->SetShare(i, 16384);
    }
    const std::string wanted = "writing 4.2 MB of about 16.8 MB (25 %)";
    std::string shown;
    while (shown.find(wanted) == std::string::npos && shown.size() < 4096) shown += pipe.First(1);
    EXPECT_NE(shown.find(wanted), std::string::npos) << shown;
  }
  EXPECT_TRUE(output->Close().ok());
}

TEST(Progress, NothingWithoutATerminal) {
  Progress progress(-1, milliseconds(0));
  progress.Begin("reading x.xpu");
  progress.Set(1, 2);
}

}  // namespace
}  // namespace xpu
