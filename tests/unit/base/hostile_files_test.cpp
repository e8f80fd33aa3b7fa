// Files that another user may have created, or changes while they are read.
#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/file_parts.h"
#include "format/base/open_file.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class HostileFiles : public testing::Test {
 protected:
  std::string Write(std::string_view name, std::string_view content) {
    const std::string path = directory_ / name;
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    EXPECT_TRUE(WriteAll(fd.get(), content, path).ok());
    return path;
  }
  static std::unique_ptr<FileParts> PartsOf(const std::string& path) {
    auto file = OpenRegularFile(path);
    EXPECT_TRUE(file.ok());
    auto parts = FileParts::Of(std::move(file).value(), path);
    EXPECT_TRUE(parts.ok());
    return std::move(parts).value();
  }

  test::TempDirectory directory_;
};

TEST_F(HostileFiles, OnlyRegularFilesAreOpened) {
  const std::string file = Write("file", "content");
  auto opened = OpenRegularFile(file);
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->info.st_size, 7);
  char bytes[8] = {};
  EXPECT_EQ(::read(opened->fd.get(), bytes, sizeof(bytes)), 7);

  const std::string pipe = directory_ / "pipe";  // nobody writes: opening it would wait for ever
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, directory_.path(), std::string("/dev/null")}) {
    const auto refused = OpenRegularFile(path);
    ASSERT_FALSE(refused.ok()) << path;
    EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
    EXPECT_EQ(refused.error().message, path + ": not a regular file");
  }
  const auto missing = OpenRegularFile(directory_ / "none");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
}

TEST_F(HostileFiles, LinksAreFollowedUnlessTheyAreNotWanted) {
  const std::string file = Write("file", "content");
  ASSERT_EQ(::symlink(file.c_str(), (directory_ / "link").c_str()), 0);
  EXPECT_TRUE(OpenRegularFile(directory_ / "link").ok());
  const auto refused = OpenRegularFile(directory_ / "link", O_NOFOLLOW);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
}

TEST_F(HostileFiles, PartsOfAFile) {
  std::string content;
  for (int i = 0; content.size() < 300'000; ++i) content += Format("{} ", i);
  const auto parts = PartsOf(Write("file", content));
  EXPECT_EQ(parts->size_bytes(), content.size());
  for (const auto& [offset, size] : {std::pair<uint64_t, uint64_t>{0, 10},
                                     {65530, 20},
                                     {100'000, 200'000},
                                     {0, content.size()},
                                     {content.size() - 5, 5}}) {
    EXPECT_EQ(TextOf(parts->Part(offset, size)), content.substr(offset, size));
  }
  EXPECT_EQ(parts->Part(content.size() - 5, 100).size(), 5u);
  EXPECT_EQ(parts->Part(5, UINT64_MAX).size(), content.size() - 5);
  EXPECT_TRUE(parts->Part(content.size(), 1).empty());
  EXPECT_TRUE(parts->Part(UINT64_MAX, 1).empty());
  EXPECT_TRUE(parts->Part(7, 0).empty());
}

// With a mapping of the file, this would end in SIGBUS.
TEST_F(HostileFiles, AFileThatIsCutReadsAsZeros) {
  const std::string path = Write("file", std::string(1'000'000, 'a'));
  const auto parts = PartsOf(path);
  EXPECT_EQ(TextOf(parts->Part(0, 3)), "aaa");
  ASSERT_EQ(::truncate(path.c_str(), 70'000), 0);
  EXPECT_EQ(TextOf(parts->Part(0, 3)), "aaa");
  const std::string rest = TextOf(parts->Part(0, 1'000'000));
  EXPECT_EQ(rest, std::string(70'000, 'a') + std::string(930'000, '\0'));
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  EXPECT_EQ(TextOf(parts->Part(0, 1'000'000)), rest);
}

// What was looked at does not change any more: a check holds for the use.
TEST_F(HostileFiles, EachByteIsReadOnce) {
  const std::string path = Write("file", std::string(200'000, 'a'));
  const auto parts = PartsOf(path);
  EXPECT_EQ(TextOf(parts->Part(100, 1)), "a");
  Write("file", std::string(200'000, 'b'));
  EXPECT_EQ(TextOf(parts->Part(101, 2)), "aa");
  EXPECT_EQ(TextOf(parts->Part(199'999, 1)), "b");
}

uint64_t PeakBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

TEST_F(HostileFiles, HolesCostNoMemoryAndSizesAreBounded) {
  const std::string path = Write("file", "begin");
  ASSERT_EQ(::truncate(path.c_str(), off_t{3} << 30), 0);
  const uint64_t before = PeakBytes();
  const auto parts = PartsOf(path);
  EXPECT_EQ(parts->Part(0, uint64_t{3} << 30).size(), uint64_t{3} << 30);
  EXPECT_EQ(TextOf(parts->Part(0, 6)), std::string("begin\0", 6));
  EXPECT_LT(PeakBytes() - before, uint64_t{64} << 20);

  // More than may be copied of one file, together and alone.
  ASSERT_EQ(::truncate(path.c_str(), off_t{10} << 30), 0);
  const auto large = PartsOf(path);
  EXPECT_TRUE(large->Part(0, uint64_t{5} << 30).empty());
  EXPECT_EQ(large->Part(uint64_t{7} << 30, uint64_t{2} << 30).size(), uint64_t{2} << 30);
  EXPECT_TRUE(large->Part(0, uint64_t{3} << 30).empty());
  EXPECT_EQ(large->Part(0, 5).size(), 5u);

  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 40), 0);
  auto refused = FileParts::Of(std::move(OpenRegularFile(path)).value(), path);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, path + ": larger than 64 GiB");
  Write("file", "");
  refused = FileParts::Of(std::move(OpenRegularFile(path)).value(), path);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
}

// Texts are looked at in pieces of eight bytes.
TEST(ForTerminal, ControlsAreWrittenOutWhereverTheyAre) {
  for (size_t at = 0; at < 20; ++at) {
    for (const int control : {0, 0x1b, 0x1f, 0x7f, 0x80, 0xff}) {
      std::string text(20, 'z');
      text[at] = static_cast<char>(control);
      std::string shown(19, 'z');
      shown.insert(at, Format("\\x{:02x}", control));
      EXPECT_EQ(ForOneLine(text), shown);
    }
  }
  for (char c = ' '; c < 0x7f; ++c) {
    EXPECT_EQ(ForOneLine(std::string(17, c)), std::string(17, c));
  }
}

TEST(ForTerminal, ControlsAreWrittenOut) {
  EXPECT_EQ(ForTerminal("plain text\n\tof lines\n"), "plain text\n\tof lines\n");
  EXPECT_EQ(ForTerminal("\x1b[2J\x1b]0;title\a"), "\\x1b[2J\\x1b]0;title\\x07");
  EXPECT_EQ(ForTerminal(std::string_view("a\0b\rc\x7f", 6)), "a\\x00b\\x0dc\\x7f");
  EXPECT_EQ(ForTerminal("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80"),
            "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80");
  // The control characters above ASCII, which begin escape sequences too.
  EXPECT_EQ(ForTerminal("\xc2\x9b"
                        "31m \xc2\xa0"),
            "\\xc2\\x9b31m \xc2\xa0");
  // Not UTF-8: a terminal in another mode would take its bytes for controls.
  EXPECT_EQ(ForTerminal("\x9b"
                        "31m"),
            "\\x9b31m");
  EXPECT_EQ(ForTerminal("\xc0\x9b \xe0\x80\x9b \xed\xa0\x80 \xf5\x80\x80\x80"),
            "\\xc0\\x9b \\xe0\\x80\\x9b \\xed\\xa0\\x80 \\xf5\\x80\\x80\\x80");
  EXPECT_EQ(ForTerminal("cut \xe2\x82"), "cut \\xe2\\x82");
  // Each control of bidirectional text, and what lies beside them.
  EXPECT_EQ(ForTerminal("\xd8\x9c\xe2\x80\x8e\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9"),
            "\\u061c\\u200e\\u202a\\u202e\\u2066\\u2069");
  EXPECT_EQ(ForTerminal("\xe2\x80\x8d\xe2\x80\xaf\xe2\x81\xa5"),
            "\xe2\x80\x8d\xe2\x80\xaf\xe2\x81\xa5");
  EXPECT_EQ(ForTerminal(""), "");
  EXPECT_EQ(ForOneLine("a\n\tb\x1b"), "a\\x0a\\x09b\\x1b");
}

TEST(ForTerminal, TheMessageOfAnErrorIsOneLine) {
  const Error error{ErrorKind::kInvalid, "a\nhint: rm -rf .: not a capture", "first\nsecond"};
  EXPECT_EQ(ForTerminal(error), "a\\x0ahint: rm -rf .: not a capture\nhint: first\nsecond");
  EXPECT_EQ(ForTerminal(Error{ErrorKind::kInvalid, "message", {}}), "message");
}

}  // namespace
}  // namespace xpu
