// Files with holes: they may look as large as any disk, and cost what is really in them.
#include <string>
#include <vector>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "container.h"
#include "filled.h"
#include "format/base/file.h"
#include "format/base/handle.h"
#include "format/capture.capnp.h"

namespace xpu::test {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kHoleBytes = 1024 * kMiB;
constexpr size_t kMostBytes = 256 * kMiB;  // in memory, of a file with such a hole

// How much more memory than at first was in use at some time: what was read of a mapping counts
// until it is gone.
class MemoryGrowth {
 public:
  MemoryGrowth() {
    const UniqueFd fd(::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC));
    EXPECT_TRUE(WriteAll(fd.get(), "5", "clear_refs").ok());
    before_ = PeakBytes();
  }
  size_t Bytes() const { return PeakBytes() - before_; }

 private:
  // Since the reset.
  static size_t PeakBytes() {
    const std::string status = ReadFile("/proc/self/status").value();
    return std::stoul(status.substr(status.find("VmHWM:") + 6)) * 1024;
  }

  size_t before_ = 0;
};

class SparseFile : public testing::Test {
 protected:
  SparseFile() : path_(testing::TempDir() + "xpu_sparse_file_" + std::to_string(::getpid())) {
    fd_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  }
  ~SparseFile() override { ::unlink(path_.c_str()); }

  void Write(size_t at, std::span<const std::byte> bytes) const {
    ASSERT_EQ(::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes.size()));
  }
  void Resize(size_t bytes) const {
    ASSERT_EQ(::ftruncate(fd_.get(), static_cast<off_t>(bytes)), 0);
  }
  bool KnowsHoles() const {
    return ::lseek(fd_.get(), 0, SEEK_HOLE) < ::lseek(fd_.get(), 0, SEEK_END);
  }

  std::string path_;
  UniqueFd fd_;
};

TEST_F(SparseFile, DataIsWhatTheDiskHas) {
  const std::string bytes(1000, 'x');
  Write(100 * kMiB, std::as_bytes(std::span(bytes)));
  Resize(200 * kMiB);
  if (!KnowsHoles()) GTEST_SKIP() << "the file system of " << path_ << " knows no holes";
  auto file = FileBytes::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->bytes().size(), 200 * kMiB);
  ASSERT_EQ(file->data().size(), 1u);
  EXPECT_LE(file->data()[0].begin, 100 * kMiB);
  EXPECT_GE(file->data()[0].end, 100 * kMiB + bytes.size());
  EXPECT_LT(file->data()[0].end - file->data()[0].begin, 4 * kMiB);
}

TEST_F(SparseFile, HolesAreNotSearchedForBlocks) {
  const FilledFile capture = FilledCapture(4, 1);
  const std::span bytes(capture.bytes);
  Write(0, bytes.first(capture.ends[2]));
  Write(kHoleBytes, bytes.subspan(capture.ends[2]));
  Resize(2 * kHoleBytes);
  if (!KnowsHoles()) GTEST_SKIP() << "the file system of " << path_ << " knows no holes";
  const MemoryGrowth growth;
  auto reader = CaptureReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  while (reader->Next()) {
  }
  EXPECT_EQ(reader->problems().blocks_read, 4u);
  EXPECT_EQ(reader->problems().bytes_skipped, 2 * kHoleBytes - bytes.size());
  EXPECT_LT(growth.Bytes(), kMostBytes);
}

// Neither the first bytes nor the search after a damaged header reads what is not there.
TEST_F(SparseFile, OtherFilesAreRefusedWithoutReadingThem) {
  for (const bool has_magic : {false, true}) {
    Resize(0);
    Write(0, std::as_bytes(std::span(has_magic ? kFileMagic : std::string_view("no magic"))));
    Resize(kHoleBytes);
    if (!KnowsHoles()) GTEST_SKIP() << "the file system of " << path_ << " knows no holes";
    const MemoryGrowth growth;
    EXPECT_FALSE(CaptureReader::Open(path_).ok());
    EXPECT_LT(growth.Bytes(), kMostBytes);
  }
}

// Of a file without the magic no more than the 8 MiB of FORMAT.md are looked at: after them is
// memory that cannot be read.
TEST(NoCapture, IsNotSearchedToItsEnd) {
  constexpr size_t kReadable = 9 * kMiB;
  void* memory = ::mmap(nullptr, 2 * kReadable, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::mprotect(memory, kReadable, PROT_READ), 0);
  const std::span bytes(static_cast<const std::byte*>(memory), 2 * kReadable);
  const auto opened = CaptureReader::FromBytes(bytes, "zeros");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().message, "zeros: not an xpu capture");
  ::munmap(memory, 2 * kReadable);
}

// A hole gives no right to more memory.
TEST_F(SparseFile, HolesDoNotRaiseTheLimits) {
  constexpr uint32_t kBombs = 100;
  std::vector<std::string> blocks;
  for (uint32_t i = 0; i < kBombs; ++i) {
    capnp::MallocMessageBuilder message;
    message.initRoot<schema::Block>().initEvents().initKernels().setRows(kMaxEventsPerBlock);
    const auto words = capnp::messageToFlatArray(message);
    const auto raw = words.asBytes();
    blocks.push_back(
        BlockOf(std::as_bytes(std::span(raw.begin(), raw.size())), i + 1, kMaxEventsPerBlock));
  }
  Write(0, FileOf(blocks));
  Resize(kHoleBytes);
  if (!KnowsHoles()) GTEST_SKIP() << "the file system of " << path_ << " knows no holes";
  auto reader = CaptureReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  uint64_t events = 0;
  while (const auto batch = reader->Next()) events += batch->kernels.size();
  EXPECT_LT(events, uint64_t{4} << 20);
  EXPECT_EQ(reader->problems().blocks_read + reader->problems().blocks_damaged, kBombs);
}

}  // namespace
}  // namespace xpu::test
