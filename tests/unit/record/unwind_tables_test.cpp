#include "record/unwind/unwind_tables.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/file.h"
#include "record/process/unwind_file.h"
#include "symbolize/unwind/unwind_builder.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

namespace fs = std::filesystem;
using test::ElfBuilder;
using test::TempDirectory;
using File = UnwindTables::File;
using Id = UnwindTables::Id;
using Ids = std::vector<Id>;
using State = UnwindTables::State;
using Texts = std::vector<std::string>;

constexpr uint64_t kForever = UINT64_MAX;
constexpr char kSelf[] = "/proc/self/exe";

File At(std::vector<std::string> paths, std::string build_id = {}) {
  return {.paths = std::move(paths), .build_id = std::move(build_id), .device = 0, .inode = 0};
}

// As a process sees a path.
std::string Through(int pid, const std::string& path) {
  return "/proc/" + std::to_string(pid) + "/root" + path;
}

std::string BytesOf(const UnwindTable& table) {
  return {reinterpret_cast<const char*>(table.header), table.header->bytes};
}

// What the builder makes of a file.
std::string Built(const std::string& path) {
  auto file = ElfFile::Open(path);
  EXPECT_TRUE(file.ok());
  auto table = BuildUnwindTable(file->image());
  EXPECT_TRUE(table.ok());
  return BytesOf(table->view());
}

bool IsReadable(int fd) {
  pollfd poll{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, 0) == 1;
}

std::vector<std::string> Reasons(UnwindTables& tables) {
  std::vector<std::string> reasons;
  for (const auto& failure : tables.TakeFailures()) {
    reasons.push_back(failure.path.substr(failure.path.rfind('/') + 1) + ": " + failure.reason);
  }
  std::sort(reasons.begin(), reasons.end());
  return reasons;
}

class UnwindTablesTest : public ::testing::Test {
 protected:
  UnwindTables Start() { return UnwindTables({.cache_directory = cache_, .threads = 2}); }
  // Copies this program; appended bytes make it another size, not another file.
  std::string Copy(const std::string& name) {
    fs::copy_file(kSelf, directory_ / name);
    return directory_ / name;
  }

  TempDirectory directory_;
  std::string cache_ = directory_ / "cache";
  const std::string build_id_ = *ReadBuildId(kSelf);
};

TEST_F(UnwindTablesTest, BuiltOnceThenFromTheCache) {
  const std::string expected = Built(kSelf);
  for (const bool cached : {false, true}) {
    UnwindTables tables = Start();
    const Id id = tables.Request(At({"/no/such/file", kSelf}, build_id_));
    tables.WaitUntil(kForever);
    ASSERT_EQ(tables.state(id), State::kReady);
    EXPECT_EQ(BytesOf(tables.table(id)), expected);
    EXPECT_EQ(tables.counts().cached, cached ? 1U : 0U);
    EXPECT_EQ(tables.counts().built, cached ? 0U : 1U);
    EXPECT_EQ(tables.cache_problem(), "");
  }
}

TEST_F(UnwindTablesTest, WithoutACache) {
  for (const std::string directory : {"", "/proc/no/such/folder"}) {
    UnwindTables tables({.cache_directory = directory, .threads = 1});
    EXPECT_EQ(tables.cache_problem().empty(), directory.empty());
    const Id id = tables.Request(At({kSelf}));
    tables.WaitUntil(kForever);
    EXPECT_EQ(tables.state(id), State::kReady);
  }
}

TEST_F(UnwindTablesTest, FinishedTablesAreReportedOnce) {
  UnwindTables tables = Start();
  EXPECT_FALSE(IsReadable(tables.fd()));
  const Id id = tables.Request(At({kSelf}));
  tables.WaitUntil(kForever);
  EXPECT_TRUE(IsReadable(tables.fd()));
  EXPECT_EQ(tables.TakeFinished(), Ids{id});
  EXPECT_FALSE(IsReadable(tables.fd()));
  EXPECT_EQ(tables.TakeFinished(), Ids{});
  const Id other = tables.Request(At({"/no/such/file"}));
  tables.WaitUntil(kForever);
  EXPECT_TRUE(IsReadable(tables.fd()));
  EXPECT_EQ(tables.TakeFinished(), Ids{other});
}

TEST_F(UnwindTablesTest, ARefusedTableFailsOnce) {
  UnwindTables tables = Start();
  const Id id = tables.Request(At({kSelf}));
  tables.WaitUntil(kForever);
  tables.Refuse(id, "no room");
  tables.Refuse(id, "no room either");
  const auto failures = tables.TakeFailures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].path, kSelf);
  EXPECT_EQ(failures[0].reason, "no room");
  EXPECT_EQ(tables.counts().failed, 1u);
  EXPECT_EQ(tables.state(id), State::kReady);
}

TEST_F(UnwindTablesTest, EachPathOfAFileIsTried) {
  UnwindTables tables = Start();
  const Id id = tables.Request(At({kSelf}));
  tables.WaitUntil(kForever);
  auto file = ElfFile::Open(kSelf);
  for (const ElfSegment& segment : file->image().segments()) {
    if (!segment.executable) continue;
    const uint64_t page = segment.file_offset / 4096 * 4096;
    EXPECT_EQ(tables.LinkAddressOfMapping(id, page, segment.file_bytes),
              segment.link_address - (segment.file_offset - page));
  }
  EXPECT_EQ(tables.LinkAddressOfMapping(id, uint64_t{1} << 40, 4096), std::nullopt);
}

TEST_F(UnwindTablesTest, TheSameFileHasOneId) {
  UnwindTables tables = Start();
  const Id by_path = tables.Request(At({kSelf}));
  EXPECT_EQ(tables.Request(At({Through(1, "/no/such"), kSelf})),
            by_path);  // the last path names it
  tables.WaitUntil(kForever);
  // Known by what was found in it.
  EXPECT_EQ(tables.Request(At({"/other"}, build_id_)), by_path);
  EXPECT_EQ(tables.Request(At({"/another"}, build_id_)), by_path);
  EXPECT_NE(tables.Request(At({"/other"})), by_path);

  // Without build-id: by device, inode and path.
  const std::string none = directory_ / "none";
  ElfBuilder("").WriteTo(none);
  const Id id = tables.Request(At({none}));
  tables.WaitUntil(kForever);
  struct stat info {};
  ASSERT_EQ(::stat(none.c_str(), &info), 0);
  File same = At({none});
  same.device = PackedDevice(info);
  same.inode = info.st_ino;
  EXPECT_EQ(tables.Request(same), id);
  same.inode += 1;
  EXPECT_NE(tables.Request(same), id);
}

// Both were requested before anything was known about them.
TEST_F(UnwindTablesTest, ACopyIsNotBuiltTwice) {
  UnwindTables tables = Start();
  Ids ids;
  for (const char* name : {"a", "b", "c", "d"}) ids.push_back(tables.Request(At({Copy(name)})));
  ids.push_back(tables.Request(At({kSelf}, build_id_)));
  tables.WaitUntil(kForever);
  const std::string expected = Built(kSelf);
  for (const Id id : ids) {
    ASSERT_EQ(tables.state(id), State::kReady);
    EXPECT_EQ(BytesOf(tables.table(id)), expected);
    EXPECT_TRUE(tables.LinkAddressOfMapping(id, 0, ~uint64_t{0}).has_value());
  }
  EXPECT_EQ(tables.counts().built, 1U);
  // The last one shares an id with a copy that had been looked at by then.
  EXPECT_EQ(tables.TakeFinished().size(), std::set<Id>(ids.begin(), ids.end()).size());
}

TEST_F(UnwindTablesTest, AFileWithAnotherBuildIdIsNotUsed) {
  ElfBuilder("another-id").WriteTo(directory_ / "replaced");
  UnwindTables tables = Start();
  const Id replaced =
      tables.Request(At({directory_ / "replaced", directory_ / "gone"}, "wanted-id"));
  const Id found = tables.Request(At({directory_ / "replaced", kSelf}, build_id_));
  tables.WaitUntil(kForever);
  EXPECT_EQ(tables.state(replaced), State::kFailed);
  EXPECT_EQ(tables.state(found), State::kReady);
  EXPECT_EQ(Reasons(tables),
            Texts{"gone: " + directory_.path() + "/replaced: the file has been replaced"});
}

TEST_F(UnwindTablesTest, Failures) {
  std::ofstream(directory_ / "text") << "not an ELF file";
  ElfBuilder("some-id").WriteTo(directory_ / "no_frames");
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  UnwindTables tables = Start();
  const Ids quiet = {tables.Request(At({directory_ / "text"})),
                     tables.Request(At({directory_ / "no_frames"})),
                     tables.Request(At({directory_ / "pipe"})),
                     tables.Request(At({"/dev/zero"})),
                     tables.Request(At({"anon_inode:thing"})),
                     tables.Request(At({directory_.path()})),
                     tables.Request(At({}))};
  const Id gone = tables.Request(At({directory_ / "gone"}));
  tables.WaitUntil(kForever);
  for (const Id id : quiet) EXPECT_EQ(tables.state(id), State::kFailed) << id;
  EXPECT_EQ(tables.state(gone), State::kFailed);
  EXPECT_EQ(tables.TakeFinished().size(), 8U);
  EXPECT_EQ(Reasons(tables), Texts{"gone: open: No such file or directory"});
  EXPECT_EQ(Reasons(tables), Texts{});
  EXPECT_EQ(tables.counts().failed, 1U);
}

// A process that was gone too soon does not spoil a library for those that come after it.
TEST_F(UnwindTablesTest, AnUnreachedFileIsTriedByOtherPaths) {
  UnwindTables tables = Start();
  const Id id = tables.Request(At({Through(0, "/lib"), "/lib/no/such"}, build_id_));
  tables.WaitUntil(kForever);
  EXPECT_EQ(tables.state(id), State::kFailed);
  EXPECT_EQ(tables.TakeFinished(), Ids{id});
  // Nothing new to try.
  EXPECT_EQ(tables.Request(At({"/lib/no/such"}, build_id_)), id);
  EXPECT_EQ(tables.state(id), State::kFailed);
  EXPECT_EQ(tables.Request(At({Through(0, "/other"), "/lib/no/such"}, build_id_)), id);
  tables.WaitUntil(kForever);
  EXPECT_EQ(tables.state(id), State::kFailed);
  EXPECT_EQ(tables.Request(At({kSelf, "/lib/no/such"}, build_id_)), id);
  tables.WaitUntil(kForever);
  EXPECT_EQ(tables.state(id), State::kReady);
  EXPECT_EQ(tables.TakeFinished(), (Ids{id, id}));
  EXPECT_EQ(Reasons(tables).size(), 1U);  // reported once
}

TEST_F(UnwindTablesTest, TheVdsoIsTheRecordersOwn) {
  UnwindTables tables = Start();
  const Id id = tables.Request(At({"[vdso]"}));
  tables.WaitUntil(kForever);
  ASSERT_EQ(tables.state(id), State::kReady);
  auto image = ElfImage::Parse(VdsoImage(), "[vdso]");
  ASSERT_TRUE(image.ok());
  const UnwindTable table = tables.table(id);
  size_t with_rule = 0, functions = 0;
  for (const ElfSymbol& symbol : image->CodeSymbols()) {
    if (!symbol.name.starts_with("__vdso_")) continue;
    ++functions;
    if (table.Find(symbol.link_address).cfa == UnwindCfa::kRsp) ++with_rule;
  }
  EXPECT_GE(functions, 4U);  // clock_gettime, gettimeofday, time, getcpu
  EXPECT_EQ(with_rule, functions);
  EXPECT_TRUE(tables.LinkAddressOfMapping(id, 0, ~uint64_t{0}).has_value());
  EXPECT_EQ(tables.Request(At({"[vdso]"})), id);
}

TEST_F(UnwindTablesTest, ADamagedCacheFileIsBuiltAgain) {
  {
    UnwindTables tables = Start();
    tables.Request(At({kSelf}));
    tables.WaitUntil(kForever);
  }
  for (const auto& entry : fs::directory_iterator(cache_)) fs::resize_file(entry.path(), 1000);
  UnwindTables tables = Start();
  const Id id = tables.Request(At({kSelf}));
  tables.WaitUntil(kForever);
  EXPECT_EQ(BytesOf(tables.table(id)), Built(kSelf));
  EXPECT_EQ(tables.counts().built, 1U);
}

// The file that was found is the one that is built, whatever its path leads to by then.
TEST_F(UnwindTablesTest, AFileThatIsRemovedOrReplacedWhileItWaits) {
  const std::string path = Copy("removed");
  auto file = IdentifyFile(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->build_id, build_id_);
  EXPECT_EQ(file->bytes, fs::file_size(path));
  fs::remove(path);
  ElfBuilder("another-id").WriteTo(path);
  auto whole = file->Reopen();
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->image().build_id(), build_id_);
  file->fd.reset();
  whole = file->Reopen();
  ASSERT_FALSE(whole.ok());
  EXPECT_EQ(whole.error().message, path + ": the file has been replaced");
}

TEST_F(UnwindTablesTest, WaitingEndsAtTheDeadline) {
  UnwindTables tables({.cache_directory = cache_, .threads = 0});
  for (int i = 0; i < 50; ++i)
    tables.Request(At({"/no/such/" + std::to_string(i), kSelf + std::to_string(i)}));
  tables.WaitUntil(0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  tables.WaitUntil(static_cast<uint64_t>(deadline.time_since_epoch().count()));
  EXPECT_TRUE(std::chrono::steady_clock::now() >= deadline || !tables.TakeFinished().empty());
}

TEST_F(UnwindTablesTest, PendingTablesAreDroppedAtTheEnd) {
  UnwindTables tables = Start();
  for (int i = 0; i < 2000; ++i) tables.Request(At({kSelf}, "id-" + std::to_string(i)));
  UnwindTables moved = std::move(tables);
}

TEST_F(UnwindTablesTest, TheThreadsTakeNoSignals) {
  UnwindTables tables = Start();
  size_t checked = 0;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::getpid())) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigBlk:")) continue;
      const uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
      for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGXFSZ, SIGPIPE}) {
        EXPECT_TRUE((blocked >> (signal - 1)) & 1) << signal;
      }
      ++checked;
    }
  }
  EXPECT_GE(checked, 3U);  // a sanitizer has one of its own
  sigset_t mine;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &mine), 0);
  EXPECT_EQ(sigismember(&mine, SIGINT), 0);
}

// The owner asks while the threads answer; for ThreadSanitizer.
TEST_F(UnwindTablesTest, RequestsWhileWorking) {
  UnwindTables tables = Start();
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator("/usr/lib/x86_64-linux-gnu")) {
    if (entry.is_regular_file() && entry.file_size() < 300000 && paths.size() < 60) {
      paths.push_back(entry.path());
    }
  }
  Ids finished;
  for (int round = 0; round < 3; ++round) {
    for (const std::string& path : paths) {
      const Id id = tables.Request(At({path}));
      if (tables.state(id) == State::kReady) tables.LinkAddressOfMapping(id, 0, 4096);
      for (const Id done : tables.TakeFinished()) {
        if (tables.state(done) == State::kReady) tables.table(done).Find(0x1000);
        finished.push_back(done);
      }
      tables.TakeFailures();
    }
  }
  tables.WaitUntil(kForever);
  for (const Id done : tables.TakeFinished()) finished.push_back(done);
  std::sort(finished.begin(), finished.end());
  EXPECT_EQ(std::adjacent_find(finished.begin(), finished.end()), finished.end());
  EXPECT_EQ(finished.size(), paths.size());
}

}  // namespace
}  // namespace xpu
