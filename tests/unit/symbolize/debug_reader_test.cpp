// The process that reads debug information: this test is also its program.
#include "symbolize/dwarf/debug_reader.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/dwarf/debug_info.h"
#include "symbolize/dwarf/debug_writer.h"
#include "symbolize/dwarf/reader_messages.h"
#include "symbolize/dwarf/reader_process.h"
#include "tests/unit/symbolize/dwarf_builder.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint32_t kNone = dwarf::RangeMap::kNone;

SourceFunction Sample() {
  return {.name = "_Z3runv",
          .ranges = {{0x1000, 0x1100}},
          .inlined = {{.function = "_Z5innerv",
                       .call_file = "/src/a.cpp",
                       .call_line = 12,
                       .parent = kNone,
                       .ranges = {{0x1010, 0x1040}}}},
          .rows = {{.link_address = 0x1000, .file = "/src/a.cpp", .line = 10},
                   {.link_address = 0x1010, .file = "/src/b.h", .line = 20},
                   {.link_address = 0x1040, .file = "/src/a.cpp", .line = 30}}};
}

test::DebugElf Program() {
  test::DebugElf elf;
  for (const auto& section : WriteDebugSections({Sample()})) elf[section.name] = section.bytes;
  return elf;
}

void WriteTo(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The processes that this one started and that are still there.
size_t CountChildren() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(entry.path() / "children");
    std::string pid;
    while (children >> pid) ++count;
  }
  return count;
}

// The first of them; 0: none.
pid_t Child() {
  std::ifstream children("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  pid_t child = 0;
  children >> child;
  return child;
}

class DebugReaderTest : public ::testing::Test {
 protected:
  Result<DebugInfo> Open(const std::string& name, const std::string& alternate = {}) {
    return DebugInfo::Open(directory_ / name,
                           {.alternate_path = alternate, .reading = DebugReading::kConfined});
  }
  // The sanitizers' runtime makes it a status.
  std::string EndedBy(int signal) const {
#ifdef XPU_SANITIZED
    const std::string how = "status 1";
    static_cast<void>(signal);
#else
    const std::string how = "signal " + std::to_string(signal);
#endif
    return (directory_ / "file") + ": the process that reads its lines failed: " + how;
  }
  test::TempDirectory directory_;
};

TEST_F(DebugReaderTest, AnotherProcessAnswersTheSame) {
  const std::string bytes = Program().Build();
  WriteTo(directory_ / "file", bytes);
  auto here = DebugInfo::Open(directory_ / "file", {});
  auto there = Open("file");
  auto parsed = DebugInfo::Parse(bytes, "bytes", DebugReading::kConfined);
  ASSERT_TRUE(here.ok() && there.ok() && parsed.ok());
  EXPECT_EQ(CountChildren(), 2u);
  const std::vector<uint64_t> addresses = {0x1000, 0x1020, 0x1050, 0x1200};
  there->Prepare(addresses);
  for (const uint64_t address : addresses) {
    const std::string expected = test::FramesAt(here.value(), address);
    EXPECT_EQ(test::FramesAt(there.value(), address), expected);
    EXPECT_EQ(test::FramesAt(parsed.value(), address), expected);
  }
  EXPECT_EQ(test::FramesAt(there.value(), 0x1020),
            "+_Z5innerv /src/b.h:20\n_Z3runv /src/a.cpp:12\n");
  const auto expected = WriteDebugSections(here->FunctionsAt(addresses));
  const auto found = WriteDebugSections(there->FunctionsAt(addresses));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].bytes, expected[i].bytes);
  EXPECT_EQ(there->failure(), "");
}

std::string FieldOf(pid_t child, const std::string& field) {
  std::ifstream status("/proc/" + std::to_string(child) + "/status");
  std::string name;
  std::string value;
  while (status >> name) {
    if (name == field && status >> value) return value;
    std::getline(status, value);
  }
  return "none";
}

TEST_F(DebugReaderTest, ReaderHasTheRightsOfTheOwnerAndNoMore) {
  WriteTo(directory_ / "file", Program().Build());
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::chown((directory_ / "file").c_str(), 12345, 23456), 0);
  }
  auto opened = Open("file");
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(test::FramesAt(opened.value(), 0x1000), "_Z3runv /src/a.cpp:10\n");
  const pid_t child = Child();
  EXPECT_EQ(FieldOf(child, "Uid:"), std::to_string(is_root ? 12345 : ::getuid()));
  EXPECT_EQ(FieldOf(child, "Gid:"), std::to_string(is_root ? 23456 : ::getgid()));
  EXPECT_EQ(FieldOf(child, "CapEff:"), "0000000000000000");
  EXPECT_EQ(FieldOf(child, "CapPrm:"), "0000000000000000");
  EXPECT_EQ(FieldOf(child, "NoNewPrivs:"), "1");
#ifndef XPU_SANITIZED
  EXPECT_EQ(FieldOf(child, "Seccomp:"), "2");
#endif
}

TEST_F(DebugReaderTest, NoProcessIsLeftOrStartedInVain) {
  WriteTo(directory_ / "file", Program().Build());
  WriteTo(directory_ / "bare", test::DebugElf().Build());
  { auto info = Open("file"); }
  EXPECT_EQ(Open("bare").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(CountChildren(), 0u);
}

TEST_F(DebugReaderTest, TruncatedFileCostsItsLinesOnly) {
  test::DebugElf elf = Program();
  elf.sections.insert(elf.sections.begin(), {".debug_macro", std::string(1 << 20, '\0')});
  WriteTo(directory_ / "file", elf.Build());
  auto opened = Open("file");
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(test::FramesAt(opened.value(), 0x1000), "_Z3runv /src/a.cpp:10\n");
  ASSERT_EQ(::truncate((directory_ / "file").c_str(), 4096), 0);
  EXPECT_EQ(test::FramesAt(opened.value(), 0x1020), "");
  EXPECT_EQ(opened->failure(), EndedBy(7));
}

TEST_F(DebugReaderTest, ProcessThatEndsIsReported) {
  WriteTo(directory_ / "file", Program().Build());
  auto opened = Open("file");
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(test::FramesAt(opened.value(), 0x1000), "_Z3runv /src/a.cpp:10\n");
  const pid_t child = Child();
  ASSERT_GT(child, 0);
  ::kill(child, SIGSEGV);
  EXPECT_EQ(test::FramesAt(opened.value(), 0x1020), "");
  EXPECT_EQ(opened->failure(), EndedBy(11));
  EXPECT_EQ(test::FramesAt(opened.value(), 0x1030), "");
  EXPECT_EQ(CountChildren(), 0u);
}

TEST_F(DebugReaderTest, StoppedProcessIsGivenUp) {
  WriteTo(directory_ / "file", Program().Build());
  auto opened = Open("file");
  ASSERT_TRUE(opened.ok());
  static_cast<void>(opened->At(0x1000));
  const pid_t child = Child();
  ASSERT_GT(child, 0);
  ::kill(child, SIGSTOP);
  const auto begin = steady_clock::now();
  EXPECT_EQ(test::FramesAt(opened.value(), 0x1020), "");
  EXPECT_LT(steady_clock::now() - begin, milliseconds(10'000));
  EXPECT_NE(opened->failure().find("no answer within 1500 ms"), std::string::npos)
      << opened->failure();
  EXPECT_EQ(CountChildren(), 0u);
}

TEST_F(DebugReaderTest, PipesAndMissingFilesAreAnsweredAtOnce) {
  const std::string pipe = directory_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  WriteTo(directory_ / "file", Program().Build());
  const auto begin = steady_clock::now();
  EXPECT_EQ(Open("pipe").error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(Open("none").error().kind, ErrorKind::kNotFound);
  for (const std::string& alternate : {pipe, directory_ / "none", std::string("/dev/zero")}) {
    auto opened = Open("file", alternate);
    ASSERT_TRUE(opened.ok());
    EXPECT_EQ(test::FramesAt(opened.value(), 0x1000), "_Z3runv /src/a.cpp:10\n");
    EXPECT_EQ(opened->failure(), "");
  }
  EXPECT_LT(steady_clock::now() - begin, milliseconds(5'000));
}

TEST(ReaderMessages, DamagedAnswersAreRefused) {
  const std::vector<SourceFunction> functions = {Sample()};
  const std::string sound = dwarf::Encode(functions);
  ASSERT_TRUE(dwarf::DecodeFunctions(sound));
  for (size_t size = 0; size < sound.size(); ++size) {
    EXPECT_FALSE(dwarf::DecodeFunctions(std::string_view(sound).substr(0, size))) << size;
  }
  for (size_t at = 0; at < sound.size(); ++at) {
    for (const char value : {'\0', '\x01', '\x7f', '\xff'}) {
      std::string damaged = sound;
      damaged[at] = value;
      // What is taken can be written.
      if (auto taken = dwarf::DecodeFunctions(damaged)) WriteDebugSections(*std::move(taken));
    }
  }
  SourceFunction circle = Sample();
  circle.inlined.front().parent = 0;
  EXPECT_FALSE(dwarf::DecodeFunctions(dwarf::Encode({circle})));
  SourceFunction nowhere = Sample();
  nowhere.ranges.clear();
  EXPECT_FALSE(dwarf::DecodeFunctions(dwarf::Encode({nowhere})));
  EXPECT_FALSE(dwarf::DecodeFrames(dwarf::Encode(dwarf::FrameLists(2)), 3));
}

// Texts below a directory as root. Others may enter it: the reader is another user then.
class TextReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may have a process in another root";
    char name[] = "/tmp/xpu-texts-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    ::chmod(name, 0755);
    root_.reset(::open(name, O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Read(const std::string& path, uid_t user = 65534) {
    const auto reader = dwarf::ReaderProcess::StartForTexts(root_.get(), user, user, "texts");
    auto text = reader->TextOf(path);
    return text.ok() ? *text : "! " + text.error().message;
  }
  void Make(const std::string& name, const std::string& bytes, mode_t mode = 0644) {
    WriteTo(directory_ + name, bytes);
    ::chmod((directory_ + name).c_str(), mode);
  }

  std::string directory_;
  UniqueFd root_;
};

TEST_F(TextReaderTest, ReadsFilesBelowTheRoot) {
  Make("/a.py", "one\ntwo\n");
  EXPECT_EQ(Read("/a.py"), "one\ntwo\n");
  EXPECT_EQ(Read("/../../a.py"), "one\ntwo\n");
  Make("/empty.py", "");
  EXPECT_EQ(Read("/empty.py"), "");
}

TEST_F(TextReaderTest, ReadsWhatTheUserMayRead) {
  Make("/secret.py", "secret\n", 0600);
  EXPECT_NE(Read("/secret.py").find("Permission denied"), std::string::npos);
  EXPECT_EQ(Read("/secret.py", 0), "secret\n");
  const auto reader = dwarf::ReaderProcess::StartForTexts(root_.get(), 65534, 65534, "texts");
  EXPECT_EQ(reader->TextOf("/secret.py").error().kind, ErrorKind::kPermission);
  EXPECT_EQ(reader->TextOf("/none.py").error().kind, ErrorKind::kNotFound);
}

TEST_F(TextReaderTest, RefusesWhatIsNoText) {
  ASSERT_EQ(::mkfifo((directory_ + "/fifo.py").c_str(), 0666), 0);
  ASSERT_EQ(::symlink("a.py", (directory_ + "/link.py").c_str()), 0);
  Make("/a.py", "one\n");
  Make("/zero.py", std::string("a\0b", 3));
  Make("/large.py", std::string(dwarf::kMostTextBytes + 1, 'x'));
  EXPECT_EQ(Read("/fifo.py"), "! /fifo.py: not a regular file");
  EXPECT_EQ(Read("/link.py"), "! /link.py: not a regular file");
  EXPECT_EQ(Read("/"), "! /: not a regular file");
  EXPECT_EQ(Read("/zero.py"), "! /zero.py: not a text");
  EXPECT_EQ(Read("/large.py"), "! /large.py: too large");
  EXPECT_NE(Read("/none.py").find("No such file"), std::string::npos);
  EXPECT_NE(Read("/proc/self/environ").find("No such file"), std::string::npos);
  EXPECT_NE(Read(std::string(5000, 'x')).find("not a path"), std::string::npos);
  Make("/most.py", std::string(dwarf::kMostTextBytes, 'x'));
  EXPECT_EQ(Read("/most.py").size(), dwarf::kMostTextBytes);
}

}  // namespace
}  // namespace xpu

int main(int argc, char** argv) {
  if (xpu::IsDebugReader(argc, argv)) return xpu::RunDebugReader();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
