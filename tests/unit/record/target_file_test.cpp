// The files of recorded processes: links, pipes and other files instead of the mapped one.
#include "record/process/target_file.h"

#include <cerrno>
#include <cstring>
#include <set>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/process_status.h"
#include "record/process/unwind_file.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

// A directory that is the root of a process, and one outside.
class TargetFile : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    for (const char* name : {"outside", "root", "root/usr", "root/usr/lib"}) {
      ASSERT_EQ(::mkdir((directory_ / name).c_str(), 0700), 0);
    }
    Write("outside/secret", "outside");
    Write("root/usr/lib/library", "inside");
  }
  void Write(const std::string& name, std::string_view content) {
    const UniqueFd fd(::open((directory_ / name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(WriteAll(fd.get(), content, name).ok());
  }
  void Link(const std::string& target, const std::string& name) {
    ASSERT_EQ(::symlink(target.c_str(), (directory_ / name).c_str()), 0);
  }
  // What is read there; the error when nothing is.
  std::string In(const std::string& path) {
    auto place = OpenInRoot(directory_ / "root", path, 0, GetParam());
    if (!place.ok()) return place.error().message;
    auto file = OpenRegularFile(std::move(place).value(), path);
    if (!file.ok()) return file.error().message;
    char bytes[100];
    const ssize_t n = ::read(file->fd.get(), bytes, sizeof(bytes));
    return {bytes, static_cast<size_t>(n)};
  }
  std::string Refused(const std::string& path, int error_number) {
    return directory_ / "root" + path + ": open: " + std::strerror(error_number);
  }

  test::TempDirectory directory_;
};

TEST_P(TargetFile, IsFoundInTheRootOfItsProcess) {
  EXPECT_EQ(In("/usr/lib/library"), "inside");
  EXPECT_EQ(In("/usr//lib/library"), "inside");
  EXPECT_EQ(In("/usr/lib/none"), Refused("/usr/lib/none", ENOENT));
  EXPECT_EQ(In("/usr/lib"), "/usr/lib: not a regular file");
}

TEST_P(TargetFile, LinksDoNotLeadOutOfTheRoot) {
  Link(directory_ / "outside/secret", "root/usr/lib/absolute");
  Link("../../../outside/secret", "root/usr/lib/relative");
  Link(directory_ / "outside", "root/usr/folder");
  Link("/proc/self/root" + (directory_ / "outside"), "root/usr/magic");
  for (const char* path :
       {"/usr/lib/absolute", "/usr/lib/relative", "/usr/folder/secret", "/usr/magic/secret",
        "/../outside/secret", "/usr/../../outside/secret"}) {
    EXPECT_NE(In(path), "outside") << path;
  }
}

// A link of the container's own: /lib is /usr/lib.
TEST_P(TargetFile, LinksCountFromTheRootWhereTheKernelCanDoThat) {
  Link("/usr/lib", "root/lib");
  EXPECT_EQ(In("/lib/library"), GetParam() ? "inside" : Refused("/lib/library", ELOOP));
}

INSTANTIATE_TEST_SUITE_P(Kernels, TargetFile, testing::Bool(),
                         [](const auto& test) { return test.param ? "openat2" : "older"; });

TEST(OpenTargetFile, ThroughProc) {
  const test::TempDirectory directory;
  test::ElfBuilder("id").WriteTo(directory / "file");
  const std::string in_root = Format("/proc/{}/root{}", ::getpid(), directory / "file");
  EXPECT_TRUE(OpenTargetFile(in_root).ok());
  EXPECT_TRUE(OpenTargetFile(directory / "file").ok());
  ASSERT_EQ(::symlink((directory / "file").c_str(), (directory / "link").c_str()), 0);
  EXPECT_TRUE(OpenTargetFile(Format("/proc/{}/root{}", ::getpid(), directory / "link")).ok());
  EXPECT_FALSE(OpenTargetFile(directory / "link", O_NOFOLLOW).ok());
  EXPECT_FALSE(
      OpenTargetFile(Format("/proc/{}/root{}", ::getpid(), directory / "link"), O_NOFOLLOW).ok());
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  const auto pipe = OpenTargetFile(Format("/proc/{}/root{}", ::getpid(), directory / "pipe"));
  ASSERT_FALSE(pipe.ok());
  EXPECT_EQ(pipe.error().kind, ErrorKind::kInvalid);
  EXPECT_FALSE(OpenTargetFile("/proc/2147483647/root"
                              "/etc/passwd")
                   .ok());
}

TEST(MayBeMapped, OtherFilesOfThatName) {
  struct stat info {};
  ASSERT_EQ(::stat("/proc/self/exe", &info), 0);
  const FileIdentity same{PackedDevice(info), info.st_ino};
  const FileIdentity other{PackedDevice(info), info.st_ino + 1};
  const FileIdentity elsewhere{PackedDevice(8, 1) + PackedDevice(info), info.st_ino};
  EXPECT_TRUE(MayBeMapped(info, "/bin/program", same));
  EXPECT_FALSE(MayBeMapped(info, "/bin/program", other));
  EXPECT_FALSE(MayBeMapped(info, "/bin/program", elsewhere));
  // Of btrfs and overlayfs, which have several devices without a number.
  struct stat anonymous = info;
  anonymous.st_dev = 0x25;
  EXPECT_TRUE(MayBeMapped(anonymous, "/bin/program", {PackedDevice(0, 0x1f), info.st_ino}));
  EXPECT_FALSE(MayBeMapped(anonymous, "/bin/program", {PackedDevice(0, 0x1f), info.st_ino + 1}));
  EXPECT_FALSE(MayBeMapped(anonymous, "/bin/program", {PackedDevice(8, 1), info.st_ino}));
  // What the process itself has there.
  EXPECT_TRUE(MayBeMapped(info,
                          "/proc/7/root"
                          "/bin/program",
                          other));
  EXPECT_TRUE(MayBeMapped(info, "/bin/program", {}));  // nobody says which one
}

TEST(FindUnwindFile, WithoutBuildIdTheInodeDecides) {
  const test::TempDirectory directory;
  test::ElfBuilder("").WriteTo(directory / "mapped");
  test::ElfBuilder("").WriteTo(directory / "other");
  struct stat info {};
  ASSERT_EQ(::stat((directory / "mapped").c_str(), &info), 0);
  const FileIdentity identity{PackedDevice(info), info.st_ino};
  auto found = FindUnwindFile({directory / "other", directory / "mapped"}, "", identity);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->path, directory / "mapped");
  found = FindUnwindFile({directory / "other"}, "", identity);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, directory / "other" + ": the file has been replaced");
}

// A build-id is what a file says of itself: tables of files that others can write are kept apart.
TEST(UnwindFile, CacheKeysIncludeTheOwnerAndWhatTheTableIsMadeOf) {
  UnwindFile file;
  file.build_id = "id";
  file.info.st_mode = S_IFREG | 0755;
  EXPECT_EQ(file.CacheKey(), "id");
  file.info.st_uid = ::geteuid();
  EXPECT_EQ(file.CacheKey(), "id");
  file.info.st_uid = 4711;
  const std::string of_user = file.CacheKey();
  file.info.st_uid = 4712;
  const std::string of_other = file.CacheKey();
  file.info.st_mode |= S_IWOTH;
  file.info.st_uid = 0;
  const std::string of_all = file.CacheKey();
  file.info.st_mode = S_IFREG | 0755;
  file.frames_bytes = 4711;
  const std::string of_debug_frame = file.CacheKey();
  file.frames_bytes = 4712;
  EXPECT_EQ(
      std::set<std::string>({"id", of_user, of_other, of_all, of_debug_frame, file.CacheKey()})
          .size(),
      6u);
  file.build_id.clear();
  EXPECT_EQ(file.CacheKey(), "");
}

TEST(ProcessOwner, OfStatus) {
  const ProcessOwner owner = ParseOwner(
      "Name:\tUid: 7\nUmask:\t0022\nUid:\t1000\t1001\t1002\t1003\nGid:\t5\t6\t7\t8\n"
      "NSpid:\t4711\t12\n");
  EXPECT_EQ(owner.user, 1001u);
  EXPECT_EQ(owner.own_pid, 12u);
  EXPECT_EQ(ParseOwner("").user, std::nullopt);
  EXPECT_EQ(ParseOwner("\nUid:\tx\ty\n").user, std::nullopt);
  const auto self = OwnerOf(static_cast<uint32_t>(::getpid()));
  ASSERT_TRUE(self.has_value());
  EXPECT_EQ(self->user, ::geteuid());
  EXPECT_FALSE(OwnerOf(2147483647).has_value());
}

TEST(ProcessOwner, FilesOfTheUserAndOfRootDescribeIt) {
  const ProcessOwner owner{.user = 4711, .own_pid = 0};
  EXPECT_TRUE(MayDescribe(owner, 4711));
  EXPECT_TRUE(MayDescribe(owner, 0));
  EXPECT_FALSE(MayDescribe(owner, 4712));
  EXPECT_TRUE(MayDescribe({}, ::geteuid()));
  EXPECT_FALSE(MayDescribe({}, ::geteuid() + 1));
}

}  // namespace
}  // namespace xpu
