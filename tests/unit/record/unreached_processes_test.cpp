// Programs that gain privileges and processes whose library never reports, detected from the
// kernel's records alone.
#include "record/gpu/unreached_processes.h"

#include <cstring>

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include "format/base/text.h"
#include "record/gpu/injection_reach.h"
#include "record/process/file_rights.h"
#include "record/source/process_source.h"
#include "record/target/gained_privileges.h"
#include "tests/unit/record/peer_testing.h"

namespace xpu {
namespace {

constexpr char kLibrary[] = "/opt/xpu/lib/xpu/libxpu_inject.so";

class UnreachedProcessesTest : public test::PeerTest {
 protected:
  void Exec(uint32_t pid) {
    ProcessEvent event;
    event.kind = ProcessEventKind::kExec;
    event.time_ns = ++now_ns_;
    event.pid = event.tid = pid;
    processes_.Observe(event, "program");
  }
  void Exit(uint32_t pid, uint32_t tid) {
    ProcessEvent event;
    event.kind = ProcessEventKind::kExit;
    event.time_ns = ++now_ns_;
    event.pid = pid;
    event.tid = tid;
    processes_.Observe(event, {});
  }
  void Map(uint32_t pid, const char* path = "/bin/program", uint64_t address = 0) {
    Mapping mapping;
    mapping.time_ns = ++now_ns_;
    mapping.pid = mapping.tid = pid;
    mapping.start_address = address;
    mapping.size_bytes = 0x1000;
    processes_.Observe(mapping, path, {});
  }
  using Examine = UnreachedProcesses::Expected::Examine;
  void Expect(Examine* examine_driver = &ObstacleToInjection,
              Examine* examine_library = &ObstacleToReport) {
    unreached_.emplace(processes_,
                       UnreachedProcesses::Expected{.library = kLibrary,
                                                    .connection_string = "it",
                                                    .examine_driver = examine_driver,
                                                    .examine_library = examine_library});
  }
  void Finish(const InjectionReports& reports) {
    processes_.EndRound(now_ns_);
    unreached_->Finish(*sink_, reports);
  }
  uint64_t Gained() {
    processes_.EndRound(now_ns_);
    privileged_.Finish(*sink_);
    return Lost(LossKind::kPrivilegesGained);
  }

  uint64_t now_ns_ = 0;
  PrivilegedPrograms privileged_{processes_};
  std::optional<UnreachedProcesses> unreached_;
};

TEST_F(UnreachedProcessesTest, AProgramThatGainsPrivilegesIsDetected) {
  Map(7);
  Exec(7);
  Exit(7, 7);
  EXPECT_EQ(Gained(), 1u);
  EXPECT_EQ(sink_->losses().details(LossKind::kPrivilegesGained),
            std::vector<std::string>{"process 7 (program)"});
}

TEST_F(UnreachedProcessesTest, OrdinaryProgramsAreNotCounted) {
  Exec(7);  // one
  Map(7);
  Exit(7, 7);
  Map(8);  // a fork
  Exit(8, 8);
  Exec(9);  // a thread of it ended
  Exit(9, 10);
  EXPECT_EQ(Gained(), 0u);
}

TEST_F(UnreachedProcessesTest, RecordsOfOtherCpusComeLater) {
  Exec(7);
  now_ns_ = 10;
  Exit(7, 7);
  processes_.EndRound(now_ns_);
  privileged_.CountLosses(*sink_);
  now_ns_ = 5;  // in between
  Map(7);
  processes_.EndRound(20'000'000'000);
  EXPECT_EQ(Gained(), 0u);
}

TEST_F(UnreachedProcessesTest, LostRecordsProveNothing) {
  sink_->losses().Add(LossKind::kPerfRecordsLost, 1);
  Exec(7);
  Exit(7, 7);
  EXPECT_EQ(Gained(), 0u);
}

std::optional<std::string> LookByPid(const MappedLibrary& mapping, const std::string& value) {
  if (mapping.pid == 8) return std::nullopt;
  return mapping.pid == 9 ? value + " is of another recorder" : "";
}

TEST_F(UnreachedProcessesTest, LibrariesThatDoNotReport) {
  Expect(&ObstacleToInjection, &LookByPid);
  for (const uint32_t pid : {7, 8, 9}) {
    Exec(pid);
    Map(pid, kLibrary);
  }
  Map(9, kLibrary);                        // two images
  Map(10, "/opt/libxpu_inject.so.debug");  // another file
  Finish({.connected = {{7, 1}, {9, 1}}, .refused = {}, .started_cuda = {}});
  EXPECT_EQ(Lost(LossKind::kProcessNotReached), 2u);
  const std::vector<std::string> details = sink_->losses().details(LossKind::kProcessNotReached);
  ASSERT_EQ(details.size(), 2u);
  EXPECT_TRUE(details[0].starts_with("process 8 (program) cannot connect to xpu-record: another "));
  EXPECT_EQ(details[1], "process 9 (program): it is of another recorder");
}

std::optional<std::string> LookByAddress(const MappedLibrary& driver, const std::string&) {
  if (driver.address == 0) return std::nullopt;
  return driver.address == 1 ? "" : "it was started without the variable";
}

TEST_F(UnreachedProcessesTest, DriversThatWillNotFindTheLibrary) {
  const auto map_driver = [&](uint32_t pid, uint64_t address) {
    Map(pid, "/usr/lib/libcuda.so.580.65.06", address);
  };
  Expect(&LookByAddress);
  for (uint32_t pid = 1; pid <= 10; ++pid) Exec(pid);
  map_driver(1, 1);  // all is well, and CUDA not used
  map_driver(2, 9);  // opened twice
  map_driver(2, 9);
  map_driver(3, 1);
  Exec(3);
  map_driver(3, 9);  // the second image
  map_driver(4, 9);
  Map(4, kLibrary);  // set by the program itself
  map_driver(5, 9);
  Map(5, kLibrary);  // the same, and it is silent
  map_driver(6, 0);
  map_driver(7, 9);
  Map(7, kLibrary);  // only NVTX has loaded it
  map_driver(8, 0);
  Map(8, kLibrary);  // refused, and so reported already
  map_driver(9, 0);
  Map(9, kLibrary);  // only NVTX has loaded it
  map_driver(10, 0);
  Map(10, kLibrary);
  Exec(10);
  map_driver(10, 0);  // the second image, without it
  Finish({.connected = {{3, 1}, {4, 1}, {7, 1}, {8, 1}, {9, 1}, {10, 1}},
          .refused = {{8, 1}},
          .started_cuda = {{3, 1}, {4, 1}}});
  EXPECT_EQ(sink_->losses().details(LossKind::kProcessNotReached).size(), 4u);
  EXPECT_EQ(Lost(LossKind::kProcessNotReached), 4u);  // 2, 3, 5, 7
  EXPECT_EQ(sink_->losses().details(LossKind::kInjectionUnknown),
            (std::vector<std::string>{"process 6 (program)", "process 10 (program)"}));
}

// It maps the library to time its marker.
TEST_F(UnreachedProcessesTest, ARecorderWithinIsNoCudaProcess) {
  Expect();
  const auto us = static_cast<uint32_t>(::getpid());
  Exec(us);
  Map(us, kLibrary);
  Finish({});
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

TEST(InjectionReach, ConnectionStrings) {
  using namespace std::string_view_literals;
  EXPECT_EQ(ObstacleToConnection("A=b\0XPU_INJECT=a:b:c\0"sv, "a:b:c"), "");
  EXPECT_EQ(ObstacleToConnection("XPU_INJECT=d:b:c\0"sv, "a:b:c"),
            "another xpu-record inside this one records it");
  for (const std::string_view without : {""sv, "XPU_INJECT=\0"sv, "XPU_INJECT_X=a:b:c\0"sv}) {
    EXPECT_TRUE(ObstacleToConnection(without, "a:b:c").starts_with("it was started without XPU_"));
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
