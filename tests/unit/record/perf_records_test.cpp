#include "record/kernel/perf_records.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <linux/perf_event.h>

namespace xpu {
namespace {

// Builds a record as the kernel does, byte by byte.
class RecordBytes {
 public:
  RecordBytes(uint32_t type, uint16_t misc) {
    Add(type);
    Add(misc);
    Add(uint16_t{0});  // the size, at the end
  }
  template <typename T>
  RecordBytes& Add(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
    return *this;
  }
  RecordBytes& AddText(std::string text) {
    text.resize((text.size() + 8) / 8 * 8);  // zero-terminated and padded to 8 bytes
    for (const char c : text) Add(c);
    return *this;
  }
  std::vector<std::byte> Finish(uint32_t pid, uint32_t tid, uint64_t time_ns, uint32_t cpu) {
    Add(pid).Add(tid).Add(time_ns).Add(cpu).Add(uint32_t{0});
    const auto size = static_cast<uint16_t>(bytes_.size());
    std::memcpy(bytes_.data() + 6, &size, sizeof(size));
    return bytes_;
  }

 private:
  std::vector<std::byte> bytes_;
};

RecordBytes MappingBytes(uint16_t misc) {
  RecordBytes bytes(PERF_RECORD_MMAP2, misc);
  bytes.Add(uint32_t{10}).Add(uint32_t{11}).Add(uint64_t{0x5000}).Add(uint64_t{0x2000});
  bytes.Add(uint64_t{0x1000});
  return bytes;
}

TEST(PerfRecords, MappingWithBuildId) {
  RecordBytes bytes = MappingBytes(1 << 14);
  bytes.Add(uint8_t{3}).Add(uint8_t{0}).Add(uint16_t{0});
  for (int i = 0; i < 20; ++i) bytes.Add(static_cast<uint8_t>(i + 1));
  bytes.Add(uint32_t{5}).Add(uint32_t{2}).AddText("/usr/bin/app");
  const auto raw = bytes.Finish(10, 12, 777, 3);
  const auto record = ParsePerfRecord(raw);
  ASSERT_TRUE(record.has_value());
  const auto& mapping = std::get<PerfMapping>(*record);
  EXPECT_EQ(mapping.origin.pid, 10u);
  EXPECT_EQ(mapping.origin.tid, 12u);
  EXPECT_EQ(mapping.origin.time_ns, 777u);
  EXPECT_EQ(mapping.origin.cpu, 3u);
  EXPECT_EQ(mapping.pid, 10u);
  EXPECT_EQ(mapping.tid, 11u);
  EXPECT_EQ(mapping.address, 0x5000u);
  EXPECT_EQ(mapping.size_bytes, 0x2000u);
  EXPECT_EQ(mapping.file_offset, 0x1000u);
  ASSERT_EQ(mapping.build_id.size(), 3u);
  EXPECT_EQ(mapping.build_id[2], std::byte{3});
  EXPECT_EQ(mapping.inode, 0u);
  EXPECT_EQ(mapping.protection, 5u);
  EXPECT_EQ(mapping.flags, 2u);
  EXPECT_EQ(mapping.path, "/usr/bin/app");
}

TEST(PerfRecords, MappingWithInode) {
  RecordBytes bytes = MappingBytes(0);
  bytes.Add(uint32_t{8}).Add(uint32_t{1}).Add(uint64_t{4711}).Add(uint64_t{99});
  bytes.Add(uint32_t{4}).Add(uint32_t{1}).AddText("[vdso]");
  const auto raw = bytes.Finish(10, 10, 1, 0);
  const auto mapping = std::get<PerfMapping>(*ParsePerfRecord(raw));
  EXPECT_EQ(mapping.device_major, 8u);
  EXPECT_EQ(mapping.device_minor, 1u);
  EXPECT_EQ(mapping.inode, 4711u);
  EXPECT_TRUE(mapping.build_id.empty());
  EXPECT_EQ(mapping.protection, 4u);
  EXPECT_EQ(mapping.path, "[vdso]");
}

// The kernel marks it so when another recorder asked for build-ids.
TEST(PerfRecords, MappingOfAnEventThatDidNotAskForBuildIds) {
  RecordBytes bytes = MappingBytes(1 << 14);
  bytes.Add(uint32_t{0xfe}).Add(uint32_t{1}).Add(uint64_t{4711}).Add(uint64_t{99});
  bytes.Add(uint32_t{5}).Add(uint32_t{2}).AddText("x");
  const auto raw = bytes.Finish(10, 10, 1, 0);
  const auto mapping = std::get<PerfMapping>(*ParsePerfRecord(raw, false));
  EXPECT_EQ(mapping.device_major, 0xfeu);
  EXPECT_EQ(mapping.inode, 4711u);
  EXPECT_TRUE(mapping.build_id.empty());
}

TEST(PerfRecords, BuildIdLongerThanItsField) {
  RecordBytes bytes = MappingBytes(1 << 14);
  bytes.Add(uint8_t{255}).Add(uint8_t{0}).Add(uint16_t{0});
  for (int i = 0; i < 20; ++i) bytes.Add(uint8_t{7});
  bytes.Add(uint32_t{5}).Add(uint32_t{2}).AddText("x");
  const auto raw = bytes.Finish(1, 1, 1, 0);
  EXPECT_EQ(std::get<PerfMapping>(*ParsePerfRecord(raw)).build_id.size(), 20u);
}

TEST(PerfRecords, Comm) {
  for (const bool is_exec : {false, true}) {
    const auto raw = RecordBytes(PERF_RECORD_COMM, is_exec ? 1 << 13 : 0)
                         .Add(uint32_t{20})
                         .Add(uint32_t{21})
                         .AddText("name")
                         .Finish(20, 21, 5, 1);
    const auto comm = std::get<PerfComm>(*ParsePerfRecord(raw));
    EXPECT_EQ(comm.pid, 20u);
    EXPECT_EQ(comm.tid, 21u);
    EXPECT_EQ(comm.is_exec, is_exec);
    EXPECT_EQ(comm.name, "name");
    EXPECT_EQ(comm.origin.time_ns, 5u);
  }
}

TEST(PerfRecords, ForkAndExit) {
  for (const uint32_t type : {PERF_RECORD_FORK, PERF_RECORD_EXIT}) {
    const auto raw = RecordBytes(type, 0)
                         .Add(uint32_t{30})
                         .Add(uint32_t{31})
                         .Add(uint32_t{32})
                         .Add(uint32_t{33})
                         .Add(uint64_t{123456})
                         .Finish(1, 2, 9, 0);
    const auto task = std::get<PerfTask>(*ParsePerfRecord(raw));
    EXPECT_EQ(task.is_exit, type == PERF_RECORD_EXIT);
    EXPECT_EQ(task.pid, 30u);
    EXPECT_EQ(task.parent_pid, 31u);
    EXPECT_EQ(task.tid, 32u);
    EXPECT_EQ(task.parent_tid, 33u);
    EXPECT_EQ(task.time_ns, 123456u);
  }
}

TEST(PerfRecords, LostAndOther) {
  const auto lost =
      RecordBytes(PERF_RECORD_LOST, 0).Add(uint64_t{1}).Add(uint64_t{42}).Finish(0, 0, 0, 0);
  EXPECT_EQ(std::get<PerfLost>(*ParsePerfRecord(lost)).count, 42u);
  const auto other = RecordBytes(PERF_RECORD_THROTTLE, 0).Finish(0, 0, 0, 0);
  EXPECT_EQ(std::get<PerfOther>(*ParsePerfRecord(other)).type, uint32_t{PERF_RECORD_THROTTLE});
}

// Every shorter version of a record that claims its own size is refused, or is text cut short.
TEST(PerfRecords, Truncated) {
  const auto raw = RecordBytes(PERF_RECORD_FORK, 0)
                       .Add(uint64_t{0})
                       .Add(uint64_t{0})
                       .Add(uint64_t{0})
                       .Finish(0, 0, 0, 0);
  for (size_t size = 0; size < raw.size(); ++size) {
    std::vector<std::byte> cut(raw.begin(), raw.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(ParsePerfRecord(cut).has_value()) << size;
    if (size < 8) continue;
    const auto claimed = static_cast<uint16_t>(size);
    std::memcpy(cut.data() + 6, &claimed, sizeof(claimed));
    EXPECT_FALSE(ParsePerfRecord(cut).has_value()) << size;
  }
}

}  // namespace
}  // namespace xpu
