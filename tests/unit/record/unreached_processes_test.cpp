// Programs that gain privileges and processes whose library never reports, told by the kernel's
// records alone.
#include "record/gpu/unreached_processes.h"

#include <cstring>

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include "format/base/text.h"
#include "record/process/file_rights.h"
#include "record/process/process_limits.h"
#include "record/target/gained_privileges.h"
#include "tests/unit/record/peer_testing.h"

namespace xpu {
namespace {

constexpr char kLibrary[] = "/opt/xpu/lib/xpu/libxpu_inject.so";

class UnreachedProcessesTest : public test::PeerTest {
 protected:
  static PerfRecord Exec(uint32_t pid, uint64_t time_ns) {
    PerfComm comm;
    comm.origin.time_ns = time_ns;
    comm.pid = comm.tid = pid;
    comm.is_exec = true;
    comm.name = "program";
    return comm;
  }
  static PerfRecord Map(uint32_t pid, uint64_t time_ns, const char* path = "/bin/program") {
    PerfMapping mapping;
    mapping.origin.time_ns = time_ns;
    mapping.pid = mapping.tid = pid;
    mapping.path = path;
    return mapping;
  }
  static PerfRecord Exit(uint32_t pid, uint32_t tid, uint64_t time_ns) {
    PerfTask task;
    task.is_exit = true;
    task.pid = pid;
    task.tid = tid;
    task.time_ns = time_ns;
    return task;
  }
  void See(std::initializer_list<PerfRecord> records) {
    for (const PerfRecord& record : records) processes_.See(record);
  }
  uint64_t Gained() {
    processes_.Finish(*sink_, {});
    return Lost(LossKind::kPrivilegesGained);
  }

  UnreachedProcesses processes_;
};

TEST_F(UnreachedProcessesTest, TakenOutByItsExec) {
  See({Map(7, 10), Exec(7, 20), Exit(7, 7, 21)});
  EXPECT_EQ(Gained(), 1u);
  EXPECT_EQ(sink_->losses().details(LossKind::kPrivilegesGained),
            std::vector<std::string>{"process 7 (program)"});
}

TEST_F(UnreachedProcessesTest, ProgramsLikeAnyOther) {
  See({Exec(7, 20), Map(7, 21), Exit(7, 7, 30)});  // one
  See({Map(8, 10), Exit(8, 8, 20)});               // a fork
  See({Exec(9, 20), Exit(9, 10, 21)});             // a thread of it ended
  EXPECT_EQ(Gained(), 0u);
}

TEST_F(UnreachedProcessesTest, RecordsOfOtherCpusComeLater) {
  See({Exit(7, 7, 30), Exec(7, 20)});
  processes_.EndRound(*sink_);
  See({Map(7, 21)});
  processes_.EndRound(*sink_);
  EXPECT_EQ(Lost(LossKind::kPrivilegesGained), 0u);
  EXPECT_EQ(Gained(), 0u);
}

TEST_F(UnreachedProcessesTest, WhereRecordsWereLostNothingIsConcluded) {
  sink_->losses().Add(LossKind::kPerfRecordsLost, 1);
  See({Exec(7, 20), Exit(7, 7, 21)});
  EXPECT_EQ(Gained(), 0u);
}

std::optional<std::string> LookByPid(const PerfMapping& mapping, const std::string& value) {
  if (mapping.pid == 8) return std::nullopt;
  return mapping.pid == 9 ? value + " is of another recorder" : "";
}

TEST_F(UnreachedProcessesTest, LibrariesThatDoNotReport) {
  processes_.ExpectInjection(
      {.library = kLibrary, .invitation = "it", .look_at_library = &LookByPid});
  See({Exec(7, 1), Map(7, 2, kLibrary)});                       // reports
  See({Exec(8, 1), Map(8, 2, kLibrary)});                       // does not
  See({Exec(9, 1), Map(9, 2, kLibrary), Map(9, 3, kLibrary)});  // two images, one report
  See({Map(10, 1, "/opt/libxpu_inject.so.debug")});             // another file
  processes_.Finish(*sink_, {.connected = {{7, 1}, {9, 1}}, .refused = {}, .started_cuda = {}});
  EXPECT_EQ(Lost(LossKind::kProcessNotReached), 2u);
  const std::vector<std::string> details = sink_->losses().details(LossKind::kProcessNotReached);
  ASSERT_EQ(details.size(), 2u);
  EXPECT_TRUE(details[0].starts_with("process 8 (program) cannot connect to xpu-record: another "));
  EXPECT_EQ(details[1], "process 9 (program): it is of another recorder");
}

std::optional<std::string> LookByAddress(const PerfMapping& driver, const std::string&) {
  if (driver.address == 0) return std::nullopt;
  return driver.address == 1 ? "" : "it was started without the variable";
}

TEST_F(UnreachedProcessesTest, DriversThatWillNotFindTheLibrary) {
  constexpr char kDriver[] = "/usr/lib/libcuda.so.580.65.06";
  const auto map_driver = [&](uint32_t pid, uint64_t time_ns, uint64_t address) {
    PerfMapping mapping = std::get<PerfMapping>(Map(pid, time_ns, kDriver));
    mapping.address = address;
    return mapping;
  };
  processes_.ExpectInjection(
      {.library = kLibrary, .invitation = "it", .look_at_driver = &LookByAddress});
  See({Exec(1, 1), map_driver(1, 2, 1)});                       // all is well, and CUDA not used
  See({Exec(2, 1), map_driver(2, 2, 9), map_driver(2, 3, 9)});  // opened twice
  See({Exec(3, 1), map_driver(3, 2, 1), Exec(3, 5), map_driver(3, 6, 9)});  // the second image
  See({Exec(4, 1), map_driver(4, 2, 9), Map(4, 3, kLibrary)});  // set by the program itself
  See({Exec(5, 1), map_driver(5, 2, 9), Map(5, 3, kLibrary)});  // the same, and it is silent
  See({Exec(6, 1), map_driver(6, 2, 0)});
  See({Exec(7, 1), map_driver(7, 2, 9), Map(7, 3, kLibrary)});  // only NVTX has loaded it
  See({Exec(8, 1), map_driver(8, 2, 0), Map(8, 3, kLibrary)});  // refused, and so told already
  processes_.Finish(*sink_, {.connected = {{3, 1}, {4, 1}, {7, 1}, {8, 1}},
                             .refused = {{8, 1}},
                             .started_cuda = {{3, 1}, {4, 1}}});
  EXPECT_EQ(sink_->losses().details(LossKind::kProcessNotReached).size(), 4u);
  EXPECT_EQ(Lost(LossKind::kProcessNotReached), 4u);  // 2, 3, 5, 7
  EXPECT_EQ(sink_->losses().details(LossKind::kInjectionUnknown),
            std::vector<std::string>{"process 6 (program)"});
}

TEST_F(UnreachedProcessesTest, NothingIsExpectedWhereNothingIsInjected) {
  See({Exec(2, 1), Map(2, 2, "/usr/lib/libcuda.so.1"), Map(2, 3, kLibrary)});
  processes_.Finish(*sink_, {});
  EXPECT_EQ(sink_->losses().total(), 0u);
}

// It maps the library to time its marker.
TEST_F(UnreachedProcessesTest, ARecorderWithinIsNoCudaProcess) {
  processes_.ExpectInjection({.library = kLibrary, .invitation = "it"});
  const auto us = static_cast<uint32_t>(::getpid());
  See({Exec(us, 1), Map(us, 2, kLibrary)});
  processes_.Finish(*sink_, {});
  EXPECT_EQ(sink_->losses().total(), 0u);
}

TEST(InjectionReach, NamesOfTheDriver) {
  for (const char* path : {"libcuda.so", "/usr/lib/libcuda.so.1", "/x/libcuda.so.580.65.06"}) {
    EXPECT_TRUE(IsCudaDriver(path)) << path;
  }
  for (const char* path : {"", "/x/libcudart.so.13", "/libcuda.so.1/x", "/x/my_libcuda.so",
                           "//anon", "/x/libcuda.sock"}) {
    EXPECT_FALSE(IsCudaDriver(path)) << path;
  }
}

TEST(InjectionReach, Environments) {
  using namespace std::string_view_literals;
  const std::string library = "/lib/xpu.so";
  EXPECT_EQ(ObstacleInEnvironment("A=b\0CUDA_INJECTION64_PATH=/lib/xpu.so\0"sv, library), "");
  EXPECT_EQ(ObstacleInEnvironment("CUDA_INJECTION64_PATH=/lib/xpu.so"sv, library), "");
  EXPECT_NE(ObstacleInEnvironment("CUDA_INJECTION64_PATH=/lib/xpu.so.1\0"sv, library), "");
  EXPECT_NE(ObstacleInEnvironment("XCUDA_INJECTION64_PATH=/lib/xpu.so\0"sv, library), "");
  EXPECT_NE(ObstacleInEnvironment("\0\0\xff\0CUDA_INJECTION64_PATH"sv, library), "");
  EXPECT_NE(ObstacleInEnvironment("", library), "");
}

TEST(InjectionReach, Invitations) {
  using namespace std::string_view_literals;
  EXPECT_EQ(ObstacleToInvitation("A=b\0XPU_INJECT=a:b:c\0"sv, "a:b:c"), "");
  EXPECT_EQ(ObstacleToInvitation("XPU_INJECT=d:b:c\0"sv, "a:b:c"),
            "another xpu-record inside this one records it");
  for (const std::string_view without : {""sv, "XPU_INJECT=\0"sv, "XPU_INJECT_X=a:b:c\0"sv}) {
    EXPECT_TRUE(ObstacleToInvitation(without, "a:b:c").starts_with("it was started without XPU_"));
  }
}

TEST(ProcessLimits, DescriptorsOfProc) {
  constexpr char kLimits[] =
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max processes             127235               127235               processes \n"
      "Max open files            5                    20000                files     \n";
  EXPECT_EQ(DescriptorLimit(kLimits), 5u);
  EXPECT_EQ(DescriptorLimit("Max open files            unlimited            unlimited"), 0u);
  EXPECT_EQ(DescriptorLimit("Max open files "), 0u);
  EXPECT_EQ(DescriptorLimit(""), 0u);
}

TEST(ProcessLimits, DescriptorsThatAreLeft) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const auto us = static_cast<uint32_t>(::getpid());
  EXPECT_EQ(ObstacleToDescriptors(us, 3), "");
  EXPECT_EQ(ObstacleToDescriptors(us, limit.rlim_cur),
            Format("its limit of {} open files leaves no descriptor free: raise it (RLIMIT_NOFILE, "
                   "'ulimit -n')",
                   limit.rlim_cur));
  EXPECT_EQ(ObstacleToDescriptors(0, limit.rlim_cur), "") << "there is no such process";
}

TEST(FileRights, ModesDecide) {
  const std::string status =
      "Name:\tx\nUid:\t1\t2\t3\t1000\nGid:\t1\t2\t3\t100\nGroups:\t7 8 \n"
      "CapEff:\t0000000000000000\n";
  const FileRights rights = ParseFileRights(status);
  EXPECT_FALSE(rights.overrides);
  const auto may_read = [&](uid_t user, gid_t group, mode_t mode) {
    struct stat file {};
    file.st_uid = user;
    file.st_gid = group;
    file.st_mode = mode;
    return Allows(file, rights, S_IROTH);
  };
  EXPECT_TRUE(may_read(1000, 0, 0400));
  EXPECT_FALSE(may_read(1000, 0, 0044));
  EXPECT_TRUE(may_read(0, 100, 0040));
  EXPECT_TRUE(may_read(0, 8, 0040));
  EXPECT_FALSE(may_read(0, 8, 0404));
  EXPECT_FALSE(may_read(0, 0, 0770));
  EXPECT_TRUE(may_read(0, 0, 0004));
  EXPECT_TRUE(ParseFileRights("").overrides);
  EXPECT_TRUE(ParseFileRights(std::string(status).replace(status.find("CapEff"), 24,
                                                          "CapEff:\t0000000000000002"))
                  .overrides);
  EXPECT_TRUE(MayRead("", "/no/such/file", rights));
}

TEST(GainedPrivileges, CapabilitiesOfAFile) {
  vfs_cap_data data{};
  data.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
  data.data[0].permitted = 1U << 13;
  data.data[1].permitted = 1U << 6;
  EXPECT_EQ(PermittedOfFile(&data, sizeof(data)), uint64_t{1} << 13 | uint64_t{1} << 38);
  data.magic_etc = VFS_CAP_REVISION_1;
  EXPECT_EQ(PermittedOfFile(&data, XATTR_CAPS_SZ_1), uint64_t{1} << 13);
  for (size_t bytes = 0; bytes < 4; ++bytes) EXPECT_EQ(PermittedOfFile(&data, bytes), 0u);
}

TEST(GainedPrivileges, FilesThatGiveNone) {
  EXPECT_EQ(GainedPrivileges("/bin/sh", {}), "");
  EXPECT_EQ(GainedPrivileges("/no/such/file", {}), "");
  EXPECT_EQ(GainedPrivileges("", {}), "");
  EXPECT_EQ(GainedPrivileges("/proc/self", {}), "");
}

}  // namespace
}  // namespace xpu
