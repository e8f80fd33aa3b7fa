#include "record/kernel/perf_records.h"

#include <cstring>

#include <linux/perf_event.h>

namespace xpu {
namespace {

#ifndef PERF_RECORD_MISC_MMAP_BUILD_ID
constexpr uint16_t PERF_RECORD_MISC_MMAP_BUILD_ID = 1 << 14;
#endif

constexpr size_t kSampleIdBytes = 24;
constexpr size_t kMaxBuildIdBytes = 20;

// Reads values from the start of the bytes. At the end of the bytes all values are 0 and ok() is
// false.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T Take() {
    T value{};
    if (bytes_.size() < sizeof(T)) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }
  std::span<const std::byte> TakeBytes(size_t count) {
    if (bytes_.size() < count) {
      ok_ = false;
      return {};
    }
    auto front = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return front;
  }
  // The remaining text up to its first zero byte.
  std::string_view TakeText() const {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    return rest.substr(0, rest.find('\0'));
  }
  bool ok() const { return ok_; }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

PerfOrigin ParseOrigin(std::span<const std::byte> bytes) {
  Cursor cursor(bytes);
  PerfOrigin origin;
  origin.pid = cursor.Take<uint32_t>();
  origin.tid = cursor.Take<uint32_t>();
  origin.time_ns = cursor.Take<uint64_t>();
  origin.cpu = cursor.Take<uint32_t>();
  return origin;
}

PerfMapping ParseMapping(Cursor& cursor, bool has_build_id) {
  PerfMapping mapping;
  mapping.pid = cursor.Take<uint32_t>();
  mapping.tid = cursor.Take<uint32_t>();
  mapping.address = cursor.Take<uint64_t>();
  mapping.size_bytes = cursor.Take<uint64_t>();
  mapping.file_offset = cursor.Take<uint64_t>();
  if (has_build_id) {
    const size_t size = cursor.Take<uint8_t>();
    cursor.TakeBytes(3);
    const auto build_id = cursor.TakeBytes(kMaxBuildIdBytes);
    mapping.build_id = build_id.first(size <= build_id.size() ? size : build_id.size());
  } else {
    mapping.device_major = cursor.Take<uint32_t>();
    mapping.device_minor = cursor.Take<uint32_t>();
    mapping.inode = cursor.Take<uint64_t>();
    cursor.TakeBytes(8);  // inode generation
  }
  mapping.protection = cursor.Take<uint32_t>();
  mapping.flags = cursor.Take<uint32_t>();
  mapping.path = cursor.TakeText();
  return mapping;
}

PerfTask ParseTask(Cursor& cursor, bool is_exit) {
  PerfTask task;
  task.is_exit = is_exit;
  task.pid = cursor.Take<uint32_t>();
  task.parent_pid = cursor.Take<uint32_t>();
  task.tid = cursor.Take<uint32_t>();
  task.parent_tid = cursor.Take<uint32_t>();
  task.time_ns = cursor.Take<uint64_t>();
  return task;
}

PerfComm ParseComm(Cursor& cursor, bool is_exec) {
  PerfComm comm;
  comm.is_exec = is_exec;
  comm.pid = cursor.Take<uint32_t>();
  comm.tid = cursor.Take<uint32_t>();
  comm.name = cursor.TakeText();
  return comm;
}

}  // namespace

std::optional<PerfRecord> ParsePerfRecord(std::span<const std::byte> bytes,
                                          bool asked_for_build_ids) {
  perf_event_header header{};
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.size != bytes.size() || bytes.size() < sizeof(header) + kSampleIdBytes) {
    return std::nullopt;
  }
  Cursor cursor(bytes.subspan(sizeof(header), bytes.size() - sizeof(header) - kSampleIdBytes));
  const PerfOrigin origin = ParseOrigin(bytes.last(kSampleIdBytes));
  const auto finish = [&](auto record) -> std::optional<PerfRecord> {
    record.origin = origin;
    if (!cursor.ok()) return std::nullopt;
    return record;
  };
  switch (header.type) {
    case PERF_RECORD_MMAP2:
      return finish(ParseMapping(
          cursor, asked_for_build_ids && (header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0));
    case PERF_RECORD_COMM:
      return finish(ParseComm(cursor, header.misc & PERF_RECORD_MISC_COMM_EXEC));
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
      return finish(ParseTask(cursor, header.type == PERF_RECORD_EXIT));
    case PERF_RECORD_LOST: {
      cursor.Take<uint64_t>();  // the event's id
      const PerfLost lost{cursor.Take<uint64_t>()};
      if (!cursor.ok()) return std::nullopt;
      return lost;
    }
    default:
      return PerfOther{header.type};
  }
}

}  // namespace xpu
