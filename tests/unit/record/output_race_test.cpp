// Captures in directories where others create, exchange and remove files at the same time.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/output/output_parts.h"

namespace xpu {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kOtherUser = 65534;

class OutputRaceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "output-race-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    ASSERT_EQ(::unsetenv("SUDO_UID"), 0);
  }
  void TearDown() override {
    ::unsetenv("SUDO_UID");
    fs::remove_all(directory_);
  }

  std::string Path(const std::string& name) { return directory_ + "/" + name; }
  void Put(const std::string& name, const std::string& content) {
    std::ofstream(Path(name)) << content;
  }
  std::string Content(const std::string& name) {
    std::ifstream file(Path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // A link to `target`, of another user where this process may give it away.
  void Link(const std::string& target, const std::string& name, uid_t owner = kOtherUser) {
    ASSERT_EQ(::symlink(target.c_str(), Path(name).c_str()), 0);
    if (::geteuid() != 0) return;
    ASSERT_EQ(::lchown(Path(name).c_str(), owner, owner), 0);
  }
  // Gives `name` to one and to the other file by turns, as long as `work` runs.
  template <typename Work>
  void WhileExchanging(const std::string& name, const std::string& one, const std::string& other,
                       Work&& work) {
    std::atomic<bool> is_over = false;
    std::thread exchanging([&] {
      while (!is_over) {
        for (const std::string& next : {one, other}) {
          ::unlink(Path("next").c_str());
          if (::linkat(AT_FDCWD, Path(next).c_str(), AT_FDCWD, Path("next").c_str(), 0) == 0) {
            ::rename(Path("next").c_str(), Path(name).c_str());
          }
        }
      }
    });
    work();
    is_over = true;
    exchanging.join();
  }
  void WriteWhileExchanging(uid_t owner);

  std::string directory_;
};

// Whatever is opened is written to, as the recorder does.
void OutputRaceTest::WriteWhileExchanging(uid_t owner) {
  Put("precious", "content");
  Link("/dev/null", "to-device", owner);
  Link("precious", "to-file", owner);
  WhileExchanging("c.xpu", "to-device", "to-file", [this] {
    constexpr int kTries = 3000;
    for (int i = 0; i < kTries && Content("precious") == "content"; ++i) {
      auto output = OutputFile::Open(Path("c.xpu"));
      if (!output.ok()) continue;
      const UniqueFd fd = output->TakeFd();
      EXPECT_EQ(::write(fd.get(), "X", 1), 1);
    }
  });
  EXPECT_EQ(Content("precious"), "content");
}

TEST_F(OutputRaceTest, ALinkOfAnotherUserThatChangesNeverLeadsToAFile) {
  WriteWhileExchanging(kOtherUser);
}

TEST_F(OutputRaceTest, AnOwnLinkThatChangesNeverLeadsToAFile) { WriteWhileExchanging(0); }

TEST_F(OutputRaceTest, OfTwoRecordersAtOnceOneWritesAndTheOtherRemovesNothing) {
  constexpr int kTries = 300;
  for (int i = 0; i < kTries; ++i) {
    fs::remove(Path("c.xpu.old"));
    fs::remove(Path("c.xpu"));
    const std::string earlier = i % 2 == 0 ? "" : "earlier";
    if (!earlier.empty()) Put("c.xpu", earlier);
    std::atomic<int> ready = 0;
    std::optional<Result<OutputFile>> outputs[2];
    const auto open = [&](int which) {
      ++ready;
      while (ready < 2) {
      }
      outputs[which].emplace(OutputFile::Open(Path("c.xpu")));
    };
    std::thread second(open, 1);
    open(0);
    second.join();
    ASSERT_NE(outputs[0]->ok(), outputs[1]->ok()) << "try " << i;
    const int winner = outputs[0]->ok() ? 0 : 1;
    EXPECT_EQ(outputs[1 - winner]->error().kind, ErrorKind::kBusy);
    const UniqueFd fd = (*outputs[winner])->TakeFd();
    struct stat opened {
    }, named{};
    ASSERT_EQ(::fstat(fd.get(), &opened), 0);
    ASSERT_EQ(::stat(Path("c.xpu").c_str(), &named), 0) << "try " << i;
    EXPECT_EQ(opened.st_ino, named.st_ino);
    EXPECT_EQ(Content("c.xpu.old"), earlier) << "try " << i;
  }
}

TEST_F(OutputRaceTest, AReplacedFileIsNotRemoved) {
  Put("c.xpu", "earlier");
  auto output = OutputFile::Open(Path("c.xpu"));
  ASSERT_TRUE(output.ok());
  Put("other", "of another");
  fs::rename(Path("other"), Path("c.xpu"));
  output->Discard();
  EXPECT_EQ(Content("c.xpu"), "of another");
  EXPECT_EQ(Content("c.xpu.old"), "earlier");
}

TEST_F(OutputRaceTest, AMovedDirectoryKeepsItsParts) {
  OutputOptions options;
  options.rotate_bytes = 1 << 20;
  options.rotate_keep = 1;
  fs::create_directory(Path("out"));
  fs::create_directory(Path("elsewhere"));
  Put("elsewhere/c.0001.xpu", "precious");
  auto parts = OutputParts::Prepare(Path("out/c.xpu"), options);
  ASSERT_TRUE(parts.ok());
  ASSERT_TRUE(parts->OpenNext().ok());
  fs::rename(Path("out"), Path("moved"));
  fs::create_directory_symlink("elsewhere", Path("out"));
  ASSERT_TRUE(parts->OpenNext().ok());
  EXPECT_TRUE(fs::exists(Path("moved/c.0002.xpu")));
  EXPECT_FALSE(fs::exists(Path("moved/c.0001.xpu")));
  EXPECT_FALSE(fs::exists(Path("elsewhere/c.0002.xpu")));
  EXPECT_EQ(Content("elsewhere/c.0001.xpu"), "precious");
}

class OutputLinksTest : public OutputRaceTest {
 protected:
  std::string MessageFor(const std::string& name) {
    const auto output = OutputFile::Open(Path(name));
    return output.ok() ? "" : output.error().message;
  }
};

TEST_F(OutputLinksTest, RootFollowsNoDirectoryLinkOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root follows the links of some users alone";
  fs::create_directory(Path("system"));
  Link("system", "theirs");
  EXPECT_EQ(MessageFor("theirs/c.xpu"),
            Path("theirs/c.xpu") + ": theirs is a symbolic link created by user 65534");
  EXPECT_TRUE(fs::is_empty(Path("system")));
  ASSERT_EQ(::setenv("SUDO_UID", "65534", 1), 0);
  EXPECT_EQ(MessageFor("theirs/c.xpu"), "");
  EXPECT_TRUE(fs::exists(Path("system/c.xpu")));
}

TEST_F(OutputLinksTest, OwnDirectoryLinksAreFollowed) {
  fs::create_directories(Path("a/b"));
  fs::create_directory_symlink("a", Path("relative"));
  fs::create_directory_symlink(Path("relative/b"), Path("absolute"));
  fs::create_directory_symlink("loop", Path("loop"));
  EXPECT_EQ(MessageFor("absolute/.././/b/c.xpu"), "");
  EXPECT_TRUE(fs::exists(Path("a/b/c.xpu")));
  EXPECT_EQ(MessageFor("loop/c.xpu"),
            Path("loop/c.xpu") + ": create: Too many levels of symbolic links");
  EXPECT_EQ(MessageFor("a/"), Path("a/") + ": open: Is a directory");
  EXPECT_EQ(MessageFor("a/none/c.xpu"),
            Path("a/none/c.xpu") + ": create: No such file or directory");
}

TEST_F(OutputLinksTest, ALinkIsFollowedToNoFile) {
  Put("precious", "content");
  fs::create_symlink("precious", Path("to-file"));
  fs::create_symlink("nothing", Path("dangling"));
  fs::create_symlink("/dev/null", Path("to-device"));
  fs::create_symlink("to-device", Path("to-link"));
  EXPECT_EQ(MessageFor("to-file"), Path("to-file") + ": is a symbolic link");
  EXPECT_EQ(MessageFor("dangling"), Path("dangling") + ": is a symbolic link");
  EXPECT_EQ(MessageFor("to-device"), "");
  EXPECT_EQ(MessageFor("to-link"), "");
  EXPECT_FALSE(fs::exists(Path("nothing")));
}

TEST_F(OutputLinksTest, OpenDescriptorsAreNamedByProc) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd in(ends[0]), out(ends[1]);
  for (const char* directory : {"/proc/self/fd/", "/dev/fd/"}) {
    auto output = OutputFile::Open(directory + std::to_string(out.get()));
    ASSERT_TRUE(output.ok()) << output.error().message;
    const UniqueFd fd = output->TakeFd();
    char byte = 0;
    EXPECT_EQ(::write(fd.get(), "X", 1), 1);
    EXPECT_EQ(::read(in.get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'X');
  }
}

TEST_F(OutputLinksTest, RootRefusesAnotherUsersFifoInASharedDirectory) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::mkfifo(Path("c.xpu").c_str(), 0600), 0);
  const UniqueFd reader(::open(Path("c.xpu").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(MessageFor("c.xpu"), "");
  ASSERT_EQ(::chown(Path("c.xpu").c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_EQ(MessageFor("c.xpu"),
            Path("c.xpu") + ": user 65534 created this FIFO in another user's directory");
  ASSERT_EQ(::chown(directory_.c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_EQ(MessageFor("c.xpu"), "");
}

}  // namespace
}  // namespace xpu
