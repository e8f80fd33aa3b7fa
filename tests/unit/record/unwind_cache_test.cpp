#include "record/unwind/unwind_cache.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/base/file.h"
#include "tests/unit/record/unwind_testing.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

namespace fs = std::filesystem;
using test::MakeTable;
using test::TempDirectory;
using Words = std::vector<uint64_t>;
using Names = std::set<std::string>;

constexpr char kId[] = "\x12\xab\x34\xcd\x00\xff";
const std::string kBuildId(kId, 6);
constexpr char kName[] = "12ab34cd00ff";

std::span<const std::byte> Bytes(const Words& words) { return std::as_bytes(std::span(words)); }

// What is stored under the build-id; empty: nothing.
Words Loaded(const UnwindCache& cache, const std::string& build_id = kBuildId) {
  const std::optional<UnwindTableBytes> table = cache.Load(build_id);
  if (!table) return {};
  const auto bytes = table->bytes();
  Words words(bytes.size() / 8);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

Names NamesIn(const std::string& directory) {
  Names names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename());
  return names;
}

void Write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

void SetAge(const std::string& path, int64_t seconds) {
  const timespec then{.tv_sec = ::time(nullptr) - seconds, .tv_nsec = 0};
  const timespec times[2] = {then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
}

class UnwindCacheTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(directory_ / "cache"); }
  UnwindCache Open(uint64_t limit = UnwindCache::kLimitBytes) {
    auto cache = UnwindCache::Open(path_, limit);
    EXPECT_TRUE(cache.ok());
    return std::move(cache).value();
  }
  std::string File(const std::string& name = kName) const { return path_ + "/" + name; }

  TempDirectory directory_;
  std::string path_ = directory_ / "cache/xpu/unwind";
};

TEST_F(UnwindCacheTest, RoundTrip) {
  UnwindCache cache = Open();
  EXPECT_EQ(Loaded(cache), Words{});
  EXPECT_FALSE(cache.grew());
  const Words table = MakeTable(16);
  EXPECT_TRUE(cache.Store(kBuildId, Bytes(table)));
  EXPECT_TRUE(cache.grew());
  EXPECT_EQ(Loaded(cache), table);
  EXPECT_EQ(Loaded(Open()), table);
  EXPECT_EQ(NamesIn(path_), Names{kName});
  EXPECT_EQ(Loaded(cache, "another"), Words{});
  const Words other = MakeTable(24, 5);
  EXPECT_TRUE(cache.Store(kBuildId, Bytes(other)));
  EXPECT_EQ(Loaded(cache), other);
}

TEST_F(UnwindCacheTest, OnlyTheOwnerMayRead) {
  UnwindCache cache = Open();
  ASSERT_TRUE(cache.Store(kBuildId, Bytes(MakeTable(16))));
  struct stat info {};
  for (const char* made : {"cache/xpu", "cache/xpu/unwind"}) {
    ASSERT_EQ(::stat((directory_ / made).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
  }
  ASSERT_EQ(::stat(File().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(UnwindCacheTest, BuildIdsOfInvalidLengthsAreNotStored) {
  UnwindCache cache = Open();
  for (const size_t length : {0U, 3U, 65U}) {
    EXPECT_FALSE(cache.Store(std::string(length, 'a'), Bytes(MakeTable(16))));
    EXPECT_EQ(Loaded(cache, std::string(length, 'a')), Words{});
  }
  for (const size_t length : {4U, 64U}) {
    EXPECT_TRUE(cache.Store(std::string(length, 'a'), Bytes(MakeTable(16))));
    EXPECT_EQ(Loaded(cache, std::string(length, 'a')), MakeTable(16));
  }
}

// A file that is not what was stored is removed, and what is stored next is found again.
TEST_F(UnwindCacheTest, CutAtEveryByte) {
  UnwindCache cache = Open();
  ASSERT_TRUE(cache.Store(kBuildId, Bytes(MakeTable(16))));
  const std::string whole = *ReadFile(File());
  for (size_t length = 0; length < whole.size(); ++length) {
    Write(File(), whole.substr(0, length));
    ASSERT_EQ(Loaded(cache), Words{}) << length;
    ASSERT_EQ(NamesIn(path_), Names{}) << length;
  }
  Write(File(), whole + std::string(8, '\0'));
  EXPECT_EQ(Loaded(cache), Words{});
  ASSERT_TRUE(cache.Store(kBuildId, Bytes(MakeTable(16))));
  EXPECT_EQ(Loaded(cache), MakeTable(16));
}

TEST_F(UnwindCacheTest, EveryBitFlipped) {
  UnwindCache cache = Open();
  ASSERT_TRUE(cache.Store(kBuildId, Bytes(MakeTable(16))));
  const std::string whole = *ReadFile(File());
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      Write(File(), damaged);
      ASSERT_EQ(Loaded(cache), Words{}) << at << " bit " << bit;
      ASSERT_EQ(NamesIn(path_), Names{});
    }
  }
}

TEST_F(UnwindCacheTest, TheTableOfAnotherFile) {
  UnwindCache cache = Open();
  ASSERT_TRUE(cache.Store("another", Bytes(MakeTable(16))));
  fs::rename(File("616e6f74686572"), File());
  EXPECT_EQ(Loaded(cache), Words{});
  EXPECT_EQ(NamesIn(path_), Names{});
}

// With a checksum that is right.
TEST_F(UnwindCacheTest, InvalidTablesAreRefused) {
  UnwindCache cache = Open();
  Words unsorted = MakeTable(16);
  auto* rows = reinterpret_cast<UnwindRow*>(reinterpret_cast<char*>(unsorted.data()) +
                                            UnwindTable::RowsAt(2, 1));
  rows[1].offset = 0;
  Words other_version = MakeTable(16);
  reinterpret_cast<UnwindTableHeader*>(other_version.data())->version = kUnwindVersion + 1;
  Words longer = MakeTable(16);
  longer.push_back(0);
  for (const Words& words : {unsorted, other_version, longer, Words{}, Words{1, 2, 3}}) {
    ASSERT_TRUE(cache.Store(kBuildId, Bytes(words)));
    EXPECT_EQ(Loaded(cache), Words{});
    EXPECT_EQ(NamesIn(path_), Names{});
  }
}

TEST_F(UnwindCacheTest, ChecksumOfEveryPosition) {
  const Words words = MakeTable(16, 3, 5);
  std::set<uint64_t> sums = {UnwindChecksum(words)};
  for (size_t at = 0; at < words.size(); ++at) {
    Words changed = words;
    changed[at] += 1;
    EXPECT_TRUE(sums.insert(UnwindChecksum(changed)).second);
  }
  EXPECT_TRUE(sums.insert(UnwindChecksum({})).second);
  EXPECT_TRUE(sums.insert(UnwindChecksum(Words{0})).second);
  EXPECT_TRUE(sums.insert(UnwindChecksum(Words{0, 0})).second);
  EXPECT_TRUE(sums.insert(UnwindChecksum(Words{1, 2})).second);
  EXPECT_TRUE(sums.insert(UnwindChecksum(Words{2, 1})).second);
}

// Each reader finds a whole table of one of the writers.
void StoreAndLoad(UnwindCache& cache, int32_t first_offset, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const Words table = MakeTable(first_offset + round % 4, 64, 64);
    if (!cache.Store(kBuildId, Bytes(table))) std::_Exit(1);
    const Words loaded = Loaded(cache);
    bool is_whole = false;
    for (int32_t offset = 0; offset < 100; ++offset) {
      is_whole = is_whole || loaded == MakeTable(offset, 64, 64);
    }
    if (!is_whole) std::_Exit(2);
  }
}

TEST_F(UnwindCacheTest, ManyThreads) {
  UnwindCache cache = Open();
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&cache, i] { StoreAndLoad(cache, i * 10, 30); });
  }
  threads.emplace_back([&cache] {
    for (int i = 0; i < 100; ++i) cache.Sweep();
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(NamesIn(path_), Names{kName});
}

TEST_F(UnwindCacheTest, ManyProcesses) {
  std::vector<pid_t> children;
  for (int32_t i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      UnwindCache cache = Open();
      StoreAndLoad(cache, i * 10, 30);
      std::_Exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(NamesIn(path_), Names{kName});
}

TEST_F(UnwindCacheTest, TheLeastRecentlyUsedGoFirst) {
  const Words table = MakeTable(16, 8, 64);
  const uint64_t file_bytes = 96 + Bytes(table).size();
  UnwindCache cache = Open(3 * file_bytes);
  for (const char* build_id : {"aaaa", "bbbb", "cccc", "dddd", "eeee"}) {
    ASSERT_TRUE(cache.Store(build_id, Bytes(table)));
  }
  SetAge(File("61616161"), 50);
  SetAge(File("62626262"), 40);
  SetAge(File("63636363"), 30);
  SetAge(File("64646464"), 20);
  SetAge(File("65656565"), 10);
  EXPECT_EQ(Loaded(cache, "aaaa"), table);  // used now
  cache.Sweep();
  EXPECT_EQ(NamesIn(path_), (Names{"61616161", "64646464", "65656565"}));
  cache.Sweep();
  EXPECT_EQ(NamesIn(path_).size(), 3U);
}

TEST_F(UnwindCacheTest, TheSweepTouchesNothingElse) {
  UnwindCache cache = Open(0);
  Write(File("README"), "x");
  Write(File("12ab34"), "x");        // too short for a build-id
  Write(File("12AB34CD00FF"), "x");  // not as we write it
  Write(File(".new-1-0-0"), "x");    // of a writer who was killed
  Write(File(".new-2-0-0"), "x");    // of one at work
  Write(File("12ab34cd00ff"), "x");  // ours
  fs::create_directory(File("abababab"));
  fs::create_symlink("README", File("cdcdcdcd"));
  SetAge(File(".new-1-0-0"), 3700);
  SetAge(File("README"), 100000);
  cache.Sweep();
  EXPECT_EQ(NamesIn(path_),
            (Names{"README", "12ab34", "12AB34CD00FF", ".new-2-0-0", "abababab", "cdcdcdcd"}));
}

TEST_F(UnwindCacheTest, ATableLargerThanTheLimitIsNotKept) {
  UnwindCache cache = Open(100);
  EXPECT_FALSE(cache.Store(kBuildId, Bytes(MakeTable(16, 8, 64))));
  EXPECT_EQ(NamesIn(path_), Names{});
}

TEST_F(UnwindCacheTest, OtherThanRegularFilesAreNotRead) {
  UnwindCache cache = Open();
  const Words table = MakeTable(16);
  ASSERT_TRUE(cache.Store("aaaa", Bytes(table)));
  fs::rename(File("61616161"), directory_ / "elsewhere");
  fs::create_symlink(directory_ / "elsewhere", File("61616161"));
  EXPECT_EQ(Loaded(cache, "aaaa"), Words{});
  ASSERT_EQ(::mkfifo(File("62626262").c_str(), 0600), 0);
  EXPECT_EQ(Loaded(cache, "bbbb"), Words{});
  // A link is replaced, not written through.
  ASSERT_TRUE(cache.Store("aaaa", Bytes(MakeTable(24))));
  EXPECT_FALSE(fs::is_symlink(File("61616161")));
  EXPECT_EQ(Loaded(cache, "aaaa"), MakeTable(24));
  ASSERT_TRUE(fs::exists(directory_ / "elsewhere"));
}

TEST_F(UnwindCacheTest, DirectoriesOfOthersAreRefused) {
  const auto refusal = [&] {
    const auto cache = UnwindCache::Open(path_);
    return cache.ok() ? std::string() : cache.error().message.substr(path_.size());
  };
  fs::create_directories(path_);
  EXPECT_EQ(refusal(), "");
  for (const mode_t mode : {0720U, 0702U, 01777U}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_EQ(refusal(), ": others may write to it");
  }
  ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
  EXPECT_EQ(refusal(), "");
  fs::remove(path_);
  fs::create_directory(directory_ / "real");
  fs::create_symlink(directory_ / "real", path_);
  EXPECT_EQ(refusal(), ": open: Not a directory");
  fs::remove(path_);
  Write(path_, "a file");
  EXPECT_EQ(refusal(), ": open: Not a directory");
  EXPECT_FALSE(UnwindCache::Open("relative/folder").ok());
  EXPECT_FALSE(UnwindCache::Open("").ok());
  EXPECT_FALSE(UnwindCache::Open("/proc/no/such").ok());
}

TEST_F(UnwindCacheTest, RootAndUsersStayApart) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  fs::create_directories(path_);
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  const auto foreign = UnwindCache::Open(path_);
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.error().message, path_ + ": belongs to another user");
  // Made there, it would shut the user out, and the user could exchange it.
  const auto below = UnwindCache::Open(path_ + "/new/folder");
  ASSERT_FALSE(below.ok());
  EXPECT_EQ(below.error().message, path_ + ": belongs to another user");
  EXPECT_EQ(NamesIn(path_), Names{});
}

TEST_F(UnwindCacheTest, RootRefusesPathsOfOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  const auto refusal = [&] {
    const auto cache = UnwindCache::Open(path_);
    return cache.ok() ? std::string() : cache.error().message;
  };
  const std::string parent = directory_ / "cache/xpu";
  fs::create_directories(parent);
  ASSERT_EQ(::chmod(parent.c_str(), 0777), 0);
  EXPECT_EQ(refusal(), parent + ": others may write to it");
  EXPECT_EQ(NamesIn(parent), Names{});
  ASSERT_EQ(::chmod(parent.c_str(), 01777), 0);  // as /tmp: what is ours stays ours
  EXPECT_EQ(refusal(), "");
  fs::rename(parent, directory_ / "moved");
  fs::create_symlink(directory_ / "moved", parent);
  EXPECT_EQ(refusal(), parent + ": open: Not a directory");
}

TEST_F(UnwindCacheTest, SystemDirectoriesAreNotCreated) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  const std::string missing = directory_ / "missing";
  const auto cache = UnwindCache::Open(missing + "/xpu/unwind");
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.error().message, missing + ": open: No such file or directory");
  EXPECT_FALSE(fs::exists(missing));
}

TEST_F(UnwindCacheTest, FilesOfOthersAreNotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  UnwindCache cache = Open();
  ASSERT_TRUE(cache.Store(kBuildId, Bytes(MakeTable(16))));
  ASSERT_EQ(::chown(File().c_str(), 65534, 65534), 0);
  EXPECT_EQ(Loaded(cache), Words{});
  EXPECT_EQ(NamesIn(path_), Names{});
}

TEST_F(UnwindCacheTest, AFullDiskIsNoError) {
  UnwindCache cache = Open();
  // As a full disk: the write ends early. In a child, since the limit is of the process.
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{200, 200};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::_Exit(cache.Store(kBuildId, Bytes(MakeTable(16, 8, 64))) ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(NamesIn(path_), Names{});
}

TEST(UnwindCacheDirectory, Default) {
  ASSERT_EQ(::setenv("HOME", "/nowhere", 1), 0);
  ASSERT_EQ(::setenv("XDG_CACHE_HOME", "/somewhere", 1), 0);
  EXPECT_EQ(UnwindCache::DefaultDirectory(0), "/var/cache/xpu/unwind");
  EXPECT_EQ(UnwindCache::DefaultDirectory(1000), "/somewhere/xpu/unwind");
  ASSERT_EQ(::setenv("XDG_CACHE_HOME", "relative", 1), 0);
  EXPECT_EQ(UnwindCache::DefaultDirectory(1000), "/nowhere/.cache/xpu/unwind");
  ASSERT_EQ(::unsetenv("XDG_CACHE_HOME"), 0);
  EXPECT_EQ(UnwindCache::DefaultDirectory(1000), "/nowhere/.cache/xpu/unwind");
  ASSERT_EQ(::unsetenv("HOME"), 0);
  EXPECT_EQ(UnwindCache::DefaultDirectory(1000), "");
}

}  // namespace
}  // namespace xpu
