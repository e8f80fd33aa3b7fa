// What is said about a program that could not be started.
#include "record/target/not_started.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace xpu {
namespace {

constexpr uid_t kStranger = 3'000'000'000;

class NotStartedTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/xpu-not-started-XXXXXX";
    directory_ = ::mkdtemp(name);
    ::chmod(directory_.c_str(), 0755);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Program(mode_t mode) {
    const std::string path = directory_ + "/program";
    std::ofstream(path) << "#!/no/such/interpreter";
    ::chmod(path.c_str(), mode);
    return path;
  }
  static std::string Hint(const std::string& path, int error_number) {
    return HintForExec(path, path, error_number, {.user = kStranger, .groups = {kStranger}},
                       "user stranger");
  }

  std::string directory_;
};

TEST_F(NotStartedTest, FilesThatMayNotBeExecuted) {
  EXPECT_EQ(Hint(directory_, EACCES), "it is a directory");
  const std::string path = Program(0644);
  EXPECT_EQ(Hint(path, EACCES), "it is not executable; if it is a program: chmod +x " + path);
  Program(0750);
  EXPECT_EQ(Hint(path, EACCES), "user stranger may not execute it: its mode is 750");
  Program(0755);
  EXPECT_TRUE(Hint(path, EACCES).starts_with("its file system is mounted noexec"));
  ::chmod(directory_.c_str(), 0700);
  EXPECT_EQ(Hint(path, EACCES), "user stranger may not enter " + directory_);
}

TEST_F(NotStartedTest, FilesThatDoNotExist) {
  EXPECT_TRUE(Hint(Program(0755), ENOENT).starts_with("the file exists, but not its interpreter"));
  EXPECT_EQ(Hint(directory_ + "/nothing", ENOENT), "");
  EXPECT_EQ(HintForExec("nothing", "", ENOENT, {}, "this user"), "it is not in PATH");
  EXPECT_EQ(HintForExec("ls -la", "", ENOENT, {}, "this user"),
            "give the program and its arguments as separate words, without quotes around them; "
            "for shell syntax: sh -c 'COMMAND'");
  EXPECT_EQ(HintForExec("plain", "", EACCES, {}, "this user"),
            "the files with this name in PATH may not be executed");
  EXPECT_EQ(Hint(Program(0755), E2BIG), "");
}

TEST_F(NotStartedTest, TheStepToAnotherUser) {
  TargetUser user;
  user.name = "nobody";
  const Error error = NotStarted({EPERM, "setgroups", "its hint"}, "/bin/true", &user);
  EXPECT_EQ(error.message, "--user nobody: setgroups: Operation not permitted");
  EXPECT_EQ(error.hint, "its hint");
}

}  // namespace
}  // namespace xpu
