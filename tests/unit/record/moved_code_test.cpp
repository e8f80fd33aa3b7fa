#include "record/process/moved_code.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/process/process_maps.h"

namespace xpu {
namespace {

// In the page that is copied.
void CodeOfTheTest() { std::fputs("never called\n", stderr); }

// A page of this program's code in memory, as if the program had moved it there.
class MovedCodeTest : public testing::Test {
 protected:
  static constexpr uint64_t kPage = 4096, kSecond = 1'000'000'000;

  void SetUp() override {
    auto writer =
        CaptureWriter::Create(UniqueFd(::memfd_create("capture", MFD_CLOEXEC)), "capture");
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    sink_.emplace(*std::move(writer));
    sink_->AddObserver(&table_);
    auto maps = ReadProcessMaps(pid_);
    ASSERT_TRUE(maps.ok());
    const auto code = reinterpret_cast<uint64_t>(&CodeOfTheTest);
    const ProcessMapping* found = FindMapping(*maps, code);
    ASSERT_NE(found, nullptr);
    file_ = MappingEventOf(pid_, 1, *found);
    path_ = found->path;
    const uint64_t page = code / kPage * kPage;
    file_.file_offset += page - file_.start_address;
    memory_ = static_cast<unsigned char*>(
        ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory_, MAP_FAILED);
    std::memcpy(memory_, reinterpret_cast<const void*>(page), kPage);
    file_.start_address = reinterpret_cast<uint64_t>(memory_);
    file_.size_bytes = kPage;
    Write(file_, path_);
  }
  void TearDown() override { ::munmap(memory_, 2 * kPage); }

  void Write(Mapping mapping, std::string_view path) {
    mapping.path = sink_->Intern(path);
    sink_->Write(mapping);
    table_.EndRound(mapping.time_ns);
  }
  void MapMemory(uint64_t time_ns, uint32_t protection) {
    Mapping mapping = file_;
    mapping.time_ns = time_ns;
    mapping.inode = mapping.device_major = mapping.device_minor = 0;
    mapping.protection = protection;
    Write(mapping, "//anon");
  }
  // What is known to be there at that time.
  std::string At(uint64_t time_ns) {
    moved_.Apply(time_ns, *sink_);
    const auto* code = table_.FindCode(pid_, file_.start_address);
    return code == nullptr ? "" : table_.file(code->second.file).path;
  }
  uint64_t Unclear() { return sink_->losses().total(LossKind::kMovedCodeUnknown); }

  const uint32_t pid_ = static_cast<uint32_t>(::getpid());
  std::optional<EventSink> sink_;
  ProcessTable table_;
  MovedCode moved_{table_};
  Mapping file_;
  std::string path_;
  unsigned char* memory_ = nullptr;
};

constexpr uint32_t kFixed = PROT_READ | PROT_EXEC, kWritable = kFixed | PROT_WRITE;
// push rbp; mov rbp, rsp; again: dec rdi; jnz again; pop rbp; ret
constexpr unsigned char kShortFunction[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff,
                                            0xcf, 0x75, 0xfb, 0x5d, 0xc3};

TEST_F(MovedCodeTest, ACopyKeepsItsFile) {
  MapMemory(kSecond, kFixed);
  EXPECT_EQ(At(kSecond), path_);
  EXPECT_EQ(Unclear(), 0U);
}

TEST_F(MovedCodeTest, BreakpointsAndPatchedNopsAreNoDifference) {
  // A nop of five bytes that becomes a call, as tracers patch it.
  constexpr unsigned char kNop[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
  unsigned char* const nop = std::search(memory_, memory_ + kPage, kNop, kNop + sizeof(kNop));
  if (nop != memory_ + kPage) std::memcpy(nop, "\xe8\x12\x34\x56\x78", sizeof(kNop));
  memory_[100] = 0xcc;
  MapMemory(kSecond, kFixed);
  EXPECT_EQ(At(kSecond), path_);
}

TEST_F(MovedCodeTest, AShortFunctionInACopyIsNotTheFiles) {
  std::memcpy(memory_ + 200, kShortFunction, sizeof(kShortFunction));
  MapMemory(kSecond, kFixed);
  EXPECT_EQ(At(kSecond), "//anon");
}

TEST_F(MovedCodeTest, WritableMemoryIsComparedAgain) {
  MapMemory(kSecond, kWritable);
  EXPECT_EQ(At(kSecond), "//anon") << "it is probably being filled";
  EXPECT_EQ(At(2 * kSecond), path_);
  const std::string before(reinterpret_cast<char*>(memory_), kPage);
  std::memcpy(memory_ + 200, kShortFunction, sizeof(kShortFunction));
  EXPECT_EQ(At(4 * kSecond), "//anon");
  EXPECT_EQ(At(6 * kSecond), "//anon");
  std::memcpy(memory_, before.data(), kPage);
  EXPECT_EQ(At(8 * kSecond), path_);
  EXPECT_EQ(Unclear(), 0U);
}

TEST_F(MovedCodeTest, AChangeOfItsProtectionIsAReasonToCompareAgain) {
  MapMemory(kSecond, kFixed);
  EXPECT_EQ(At(kSecond), path_);
  std::memcpy(memory_ + 200, kShortFunction, sizeof(kShortFunction));
  MapMemory(2 * kSecond, kFixed);
  EXPECT_EQ(At(2 * kSecond), "//anon");
}

TEST_F(MovedCodeTest, PagesOfBothKindsAreCounted) {
  Mapping both = file_;
  both.time_ns = 2;
  both.size_bytes = 2 * kPage;
  file_ = both;
  Write(both, path_);  // its second page is zero in memory
  std::memset(memory_ + kPage, 0x90, kPage);
  MapMemory(kSecond, kFixed);
  EXPECT_EQ(At(kSecond), "//anon");
  EXPECT_EQ(Unclear(), 1U);
}

TEST_F(MovedCodeTest, AFileThatIsNotFoundIsCountedOnce) {
  Mapping gone = file_;
  gone.time_ns = 2;
  gone.inode += 1'000'000;
  Write(gone, "/nowhere/lib.so");
  MapMemory(kSecond, kWritable);
  EXPECT_EQ(At(2 * kSecond), "//anon");
  EXPECT_EQ(At(4 * kSecond), "//anon");
  EXPECT_EQ(Unclear(), 1U);
}

}  // namespace
}  // namespace xpu
