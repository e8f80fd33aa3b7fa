#include "record/symbols/hit_files.h"

#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbolize/elf/elf_image.h"

namespace xpu {
namespace {

constexpr char kMappedFile[] = "/lib/one.so";
constexpr char kOther[] = "/lib/two.so";
constexpr uint64_t kLongAfter = 10'000'000'000;

using Files = std::map<std::string, std::vector<uint64_t>>;  // by path and build-id

// The number of no process: an end is believed.
uint32_t UnusedPid() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return static_cast<uint32_t>(pid);
}

class HitFilesTest : public ::testing::Test {
 protected:
  void Map(uint32_t pid, uint64_t address, const char* path, uint64_t file_offset = 0,
           std::string_view build_id = "id") {
    Mapping mapping;
    mapping.time_ns = ++now_ns_;
    mapping.pid = mapping.tid = pid;
    mapping.start_address = address;
    mapping.size_bytes = 0x1000;
    mapping.file_offset = file_offset;
    processes_.Observe(mapping, path, build_id);
    processes_.ApplyNotes();
  }

  void Happen(ProcessEventKind kind, uint32_t pid, uint32_t parent_pid, uint64_t time_ns = 0) {
    ProcessEvent event;
    event.time_ns = time_ns != 0 ? time_ns : ++now_ns_;
    event.kind = kind;
    event.pid = event.tid = pid;
    event.parent_pid = event.parent_tid = parent_pid;
    processes_.Observe(event, {});
    processes_.ApplyNotes();
  }
  void Fork(uint32_t pid, uint32_t parent_pid, uint64_t time_ns = 0) {
    Happen(ProcessEventKind::kFork, pid, parent_pid, time_ns);
  }
  void Exit(uint32_t pid) { Happen(ProcessEventKind::kExit, pid, 0); }

  // Frames of user space, innermost first; `kernel` ones before them.
  StackId Stack(std::vector<uint64_t> addresses, size_t kernel = 0) {
    StackId caller;
    for (size_t i = addresses.size(); i-- > 0;) {
      const FrameKind kind = i < kernel ? FrameKind::kKernel : FrameKind::kUser;
      const StackNode node{caller, {kind, addresses[i]}};
      caller = StackId{next_++};
      nodes_[caller.value] = node;
    }
    return caller;
  }

  void SampleStack(uint32_t pid, StackId stack) {
    hits_.ObserveStack(pid, stack, [this](StackId id) {
      ++visits_;
      return nodes_.at(id.value);
    });
  }
  void Sample(uint32_t pid, std::vector<uint64_t> addresses) { SampleStack(pid, Stack(addresses)); }

  using Offsets = std::vector<uint64_t>;
  Files Taken() {
    Files files;
    taken_ = hits_.Take();
    for (const HitFile& file : taken_.files) files[file.path + file.build_id] = file.offsets;
    return files;
  }

  ProcessTable processes_;
  HitFiles hits_{processes_};
  OccurringCode taken_;
  uint64_t now_ns_ = 0;
  std::map<uint32_t, StackNode> nodes_;
  uint32_t next_ = 2;
  int visits_ = 0;
};

TEST_F(HitFilesTest, OffsetsOfInstructionsAndOfCalls) {
  Map(7, 0x10000, kMappedFile, 0x2000);
  Map(7, 0x20000, kOther);
  Sample(7, {0x10010, 0x20020});
  EXPECT_EQ(Taken(), (Files{{"/lib/one.soid", {0x200f, 0x2010}}, {"/lib/two.soid", {0x1f}}}));
}

TEST_F(HitFilesTest, KernelFramesBelongToNoFile) {
  Map(7, 0x10000, kMappedFile);
  SampleStack(7, Stack({0xffffffff81000000, 0x10010}, 1));
  EXPECT_EQ(Taken(), (Files{{"/lib/one.soid", {0xf, 0x10}}}));
}

TEST_F(HitFilesTest, AStackIsWalkedOnce) {
  Map(7, 0x10000, kMappedFile);
  const StackId stack = Stack({0x10010, 0x10020, 0x10030});
  SampleStack(7, stack);
  EXPECT_EQ(visits_, 3);
  SampleStack(7, stack);
  EXPECT_EQ(visits_, 3);
  SampleStack(7, Stack({0x10011}));
  SampleStack(7, stack);  // among the last ones
  EXPECT_EQ(visits_, 4);
  const StackId same_place{stack.value + 256};  // is remembered in place of the first
  nodes_[same_place.value] = {StackId{}, {FrameKind::kUser, 0x10012}};
  SampleStack(7, same_place);
  SampleStack(7, stack);  // its innermost frame tells that its callers were seen
  EXPECT_EQ(visits_, 6);
}

TEST_F(HitFilesTest, AnInnermostFrameThatWasACallerEarlier) {
  Map(7, 0x10000, kMappedFile);
  const StackId caller = Stack({0x10020});
  nodes_[100] = {caller, {FrameKind::kUser, 0x10010}};
  SampleStack(7, StackId{100});
  SampleStack(7, caller);
  EXPECT_EQ(Taken(), (Files{{"/lib/one.soid", {0xf, 0x10, 0x1f, 0x20}}}));
}

TEST_F(HitFilesTest, MappingsMayBeReportedAfterTheSample) {
  Sample(7, {0x10010});
  Map(7, 0x10000, kMappedFile);
  EXPECT_EQ(Taken(), (Files{{"/lib/one.soid", {0xf, 0x10}}}));
}

TEST_F(HitFilesTest, TwoFilesAtOneAddressAreBothHit) {
  Map(7, 0x10000, kMappedFile);
  Map(7, 0x10000, kOther, 0x500);
  Sample(7, {0x10010});
  EXPECT_EQ(Taken(), (Files{{"/lib/one.soid", {0xf, 0x10}}, {"/lib/two.soid", {0x50f, 0x510}}}));
}

TEST_F(HitFilesTest, ProcessesHaveTheirOwnMappings) {
  Map(7, 0x10000, kMappedFile);
  Map(8, 0x10000, kOther);
  Sample(8, {0x10010});
  EXPECT_EQ(Taken(), (Files{{"/lib/two.soid", {0xf, 0x10}}}));
}

TEST_F(HitFilesTest, BuildsOfOnePathAreTwoFiles) {
  Map(7, 0x10000, kMappedFile, 0, "a");
  Map(7, 0x20000, kMappedFile, 0, "b");
  Sample(7, {0x10010});
  Sample(7, {0x20020});
  EXPECT_EQ(Taken(), (Files{{"/lib/one.soa", {0xf, 0x10}}, {"/lib/one.sob", {0x1f, 0x20}}}));
}

TEST_F(HitFilesTest, AChildInheritsMappings) {
  Map(7, 0x10000, kMappedFile);
  Fork(8, 7);
  Map(7, 0x20000, kOther);  // reported late
  Sample(8, {0x10010, 0x20020});
  EXPECT_EQ(Taken(), (Files{{"/lib/one.soid", {0xf, 0x10}}, {"/lib/two.soid", {0x1f}}}));
}

TEST_F(HitFilesTest, AForkThatIsReportedLate) {
  Map(7, 0x10000, kMappedFile);
  now_ns_ = 100;
  Map(8, 0x20000, kOther);
  Fork(8, 7, 50);
  Sample(8, {0x10010, 0x20020});
  EXPECT_EQ(Taken().size(), 2u);
}

TEST_F(HitFilesTest, EndedProcessesAreMatchedAtTheirEnd) {
  const uint32_t pid = UnusedPid();
  Map(pid, 0x10000, kMappedFile);
  Exit(pid);
  Sample(pid, {0x10010});  // came through a slower ring
  processes_.EndRound(now_ns_ + kLongAfter);
  Sample(pid, {0x10020});  // of nobody: the mappings are gone
  EXPECT_EQ(Taken(), (Files{{"/lib/one.soid", {0xf, 0x10}}}));
  EXPECT_EQ(taken_.generated.at(0).addresses, (Offsets{0x1001f, 0x10020}));
}

TEST_F(HitFilesTest, CodeInNoFile) {
  Map(7, 0x10000, kMappedFile);
  Map(7, 0x30000, "/tmp/jit-7.dump");
  Map(7, 0x40000, "//anon", 0, "");
  Sample(7, {0x40010, 0x40020, 0x10010});
  Sample(8, {0x50010});
  EXPECT_EQ(Taken(), (Files{{"/lib/one.soid", {0xf}}}));
  const std::vector<HitCode>& code = taken_.generated;
  ASSERT_EQ(code.size(), 2u);
  EXPECT_EQ(code[0].pid, 7u);
  EXPECT_EQ(code[0].dump_path, "/tmp/jit-7.dump");
  EXPECT_EQ(code[0].addresses, (Offsets{0x4000f, 0x40010, 0x4001f}));
  EXPECT_EQ(code[1].pid, 8u);
  EXPECT_EQ(code[1].dump_path, "");
}

TEST_F(HitFilesTest, OtherNamesAreNoDumps) {
  for (const char* path :
       {"/tmp/jit-.dump", "/tmp/jit-7.dumps", "/tmp/xjit-7.dump", "/tmp/jit-7a.dump"}) {
    Map(7, 0x30000, path);
  }
  Sample(7, {0x40010});
  Taken();
  EXPECT_EQ(taken_.generated.at(0).dump_path, "");
}

TEST_F(HitFilesTest, AFileThatIsDeletedLaterIsHeld) {
  std::string path = ::testing::TempDir() + "hit_files_XXXXXX";
  ::close(::mkstemp(path.data()));
  std::ofstream(path) << "content";
  Map(static_cast<uint32_t>(::getpid()), 0x10000, path.c_str(), 0, "");
  Sample(static_cast<uint32_t>(::getpid()), {0x10010});
  ::unlink(path.c_str());
  const std::vector<HitFile> files = hits_.Take().files;
  ASSERT_EQ(files.size(), 1u);
  char text[16] = {};
  EXPECT_EQ(::pread(files[0].fd.get(), text, sizeof(text), 0), 7);
  EXPECT_STREQ(text, "content");
}

// By the time that it is opened another one may lie there.
TEST_F(HitFilesTest, AFileWithAnotherBuildIdIsNotHeld) {
  const std::string build_id = *ReadBuildId("/proc/self/exe");
  Map(1, 0x10000, "/proc/self/exe", 0, build_id);
  Map(1, 0x20000, "/proc/self/exe", 0, "another");
  Sample(1, {0x10010, 0x20010});
  for (const HitFile& file : hits_.Take().files) {
    EXPECT_EQ(static_cast<bool>(file.fd), file.build_id == build_id);
  }
}

TEST(HitFilesLimit, NoMoreFilesAreHeldThanAllowed) {
  ProcessTable processes;
  HitFiles hits(processes, nullptr, 1);
  Mapping mapping;
  mapping.pid = mapping.tid = 1;
  mapping.start_address = 0x10000;
  mapping.size_bytes = 0x1000;
  processes.Observe(mapping, "/proc/self/exe", "");
  mapping.start_address = 0x20000;
  processes.Observe(mapping, "/proc/self/maps", "");
  processes.ApplyNotes();
  hits.ObserveStack(1, StackId{2}, [](StackId id) {
    return StackNode{StackId{id.value == 2 ? 3u : 0u},
                     {FrameKind::kUser, id.value == 2 ? 0x10010u : 0x20010u}};
  });
  const std::vector<HitFile> files = hits.Take().files;
  ASSERT_EQ(files.size(), 2u);
  EXPECT_TRUE(files[0].fd);
  EXPECT_FALSE(files[1].fd);
}

}  // namespace
}  // namespace xpu
