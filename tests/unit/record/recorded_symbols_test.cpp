// What WriteSymbols puts into a capture.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "record/symbols/symbol_slices.h"
#include "symbolize/elf/elf_image.h"
#include "tests/unit/record/peer_testing.h"

namespace xpu {
namespace {

constexpr uint64_t kStart = 0x10000;

extern "C" __attribute__((noinline)) void FunctionOfTheTest() { asm volatile(""); }

class RecordedSymbolsTest : public test::PeerTest {
 protected:
  void SetUp() override {
    PeerTest::SetUp();
    sink_->AddObserver(&hits_);
  }

  // A sample at `file_offset` of the file, which is mapped from its beginning on.
  void Hit(const std::string& path, uint64_t file_offset, const std::string& build_id = "") {
    Mapping mapping;
    mapping.pid = mapping.tid = 4711;
    mapping.start_address = next_start_;
    mapping.size_bytes = uint64_t{1} << 30;
    mapping.path = sink_->Intern(path);
    mapping.build_id = sink_->Intern(build_id);
    sink_->Write(mapping);
    CpuSample sample;
    sample.pid = sample.tid = 4711;
    const Frame frame{FrameKind::kUser, next_start_ + file_offset};
    sample.stack = sink_->Intern({&frame, 1});
    sink_->Write(sample);
    next_start_ += uint64_t{1} << 32;
  }

  // Of all parts.
  std::string Bytes(const EventBatch& events) {
    std::string bytes;
    for (size_t i = 0; i < events.symbol_slices.size(); ++i) {
      EXPECT_EQ(events.symbol_slices[i].part, i);
      EXPECT_EQ(events.symbol_slices[i].part_count, events.symbol_slices.size());
      bytes += Text(events.symbol_slices[i].bytes);
    }
    return bytes;
  }

  HitFiles hits_{processes_};
  OccurringCode Taken() {
    processes_.ApplyNotes();
    return hits_.Take();
  }

  uint64_t next_start_ = kStart;
};

uint64_t OwnFileOffset(const ElfImage& image, std::string_view name) {
  for (const ElfSymbol& symbol : image.CodeSymbols()) {
    if (symbol.name == name) return image.FileOffsetOf(symbol.link_address).value_or(0);
  }
  return 0;
}

TEST_F(RecordedSymbolsTest, OnlyTheFunctionThatOccursIsStored) {
  FunctionOfTheTest();
  auto self = ElfFile::Open("/proc/self/exe");
  ASSERT_TRUE(self.ok());
  const std::string path = std::filesystem::read_symlink("/proc/self/exe");
  const std::string build_id(self->image().build_id());
  const uint64_t offset = OwnFileOffset(self->image(), "FunctionOfTheTest");
  ASSERT_NE(offset, 0u);
  Hit(path, offset, build_id);
  WriteSymbols(Taken(), SymbolDetail::kNames, {}, *sink_);
  const EventBatch events = Events();
  ASSERT_EQ(events.symbol_slices.size(), 1u);
  EXPECT_EQ(Text(events.symbol_slices[0].path), path);
  EXPECT_EQ(Text(events.symbol_slices[0].build_id), build_id);
  EXPECT_EQ(events.symbol_slices[0].detail, SymbolDetail::kNames);
  const std::string bytes = Bytes(events);
  auto slice = ElfImage::Parse(std::as_bytes(std::span(bytes)), "slice");
  ASSERT_TRUE(slice.ok()) << slice.error().ToString();
  EXPECT_EQ(slice->build_id(), build_id);
  EXPECT_EQ(OwnFileOffset(*slice, "FunctionOfTheTest"), offset);
  EXPECT_LE(slice->CodeSymbols().size(), 2u);  // and the one before it, if it was its caller
  EXPECT_EQ(Lost(LossKind::kSymbolsNotStored), 0u);
}

TEST_F(RecordedSymbolsTest, FilesWithoutRoomAreCounted) {
  const std::string path = std::filesystem::read_symlink("/proc/self/exe");
  auto self = ElfFile::Open(path);
  ASSERT_TRUE(self.ok());
  const uint64_t offset = OwnFileOffset(self->image(), "FunctionOfTheTest");
  Hit(path, offset, std::string(self->image().build_id()));
  WriteSymbols(Taken(), SymbolDetail::kNames, {.slice_bytes = 100}, *sink_);
  EXPECT_TRUE(Events().symbol_slices.empty());
  EXPECT_EQ(Lost(LossKind::kSymbolsNotStored), 1u);
}

TEST_F(RecordedSymbolsTest, TheVdso) {
  Hit("[vdso]", 0xc00);
  WriteSymbols(Taken(), SymbolDetail::kNames, {}, *sink_);
  const EventBatch events = Events();
  ASSERT_EQ(events.symbol_slices.size(), 1u);
  EXPECT_EQ(Text(events.symbol_slices[0].path), "[vdso]");
}

TEST_F(RecordedSymbolsTest, MissingFilesAreCounted) {
  Hit("/no/such/file", 0x1000, "id");
  Hit("/proc/self/exe", 0x1000, "another build");
  WriteSymbols(Taken(), SymbolDetail::kNames, {}, *sink_);
  EXPECT_EQ(Lost(LossKind::kSymbolsNotStored), 2u);
  const std::vector<std::string> details = sink_->losses().details(LossKind::kSymbolsNotStored);
  ASSERT_EQ(details.size(), 2u);
  EXPECT_EQ(details[0].substr(0, 14), "/no/such/file:");
  EXPECT_EQ(details[1].substr(0, 38), "/proc/self/exe: not the recorded file:");
  EXPECT_TRUE(Events().symbol_slices.empty());
}

TEST_F(RecordedSymbolsTest, DataIsNoLoss) {
  const std::string path = path_ + ".data";
  std::ofstream(path) << std::string(1000, '#');
  Hit(path, 10);
  WriteSymbols(Taken(), SymbolDetail::kNames, {}, *sink_);
  std::filesystem::remove(path);
  EXPECT_EQ(Lost(LossKind::kSymbolsNotStored), 0u);
  EXPECT_TRUE(Events().symbol_slices.empty());
}

TEST_F(RecordedSymbolsTest, NothingOccurs) {
  WriteSymbols(Taken(), SymbolDetail::kLines, {}, *sink_);
  EXPECT_TRUE(Events().symbol_slices.empty());
}

}  // namespace
}  // namespace xpu
