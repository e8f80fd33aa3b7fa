// Parses perf's records of processes and mappings.
//
// Relies on the layout that task_records.cpp requests: sample_id_all with TID, TIME and CPU, so
// that every record ends with 24 bytes of {pid, tid} {time} {cpu, reserved}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace xpu {

// The producer of a record, and its time.
struct PerfOrigin {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  uint32_t cpu = 0;
};

// Strings and bytes point into the record.
struct PerfMapping {
  PerfOrigin origin;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  uint32_t device_major = 0;  // 0 if the record has a build-id instead
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  std::span<const std::byte> build_id;  // empty: unknown
  uint32_t protection = 0;
  uint32_t flags = 0;
  std::string_view path;
};

struct PerfComm {
  PerfOrigin origin;
  uint32_t pid = 0;
  uint32_t tid = 0;
  bool is_exec = false;
  std::string_view name;
};

struct PerfTask {  // FORK and EXIT
  PerfOrigin origin;
  bool is_exit = false;
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  uint32_t tid = 0;
  uint32_t parent_tid = 0;
  uint64_t time_ns = 0;
};

struct PerfLost {
  uint64_t count = 0;
};

struct PerfOther {  // of a kind that was not requested
  uint32_t type = 0;
};

using PerfRecord = std::variant<PerfMapping, PerfComm, PerfTask, PerfLost, PerfOther>;

// `bytes` is one record with its header. nullopt if it is shorter than its kind requires.
// `asked_for_build_ids`: perf_event_attr::build_id of its event. The kernel marks the records of
// all events as having build-ids if any event in the system has them (6.18), even another
// recorder's.
std::optional<PerfRecord> ParsePerfRecord(std::span<const std::byte> bytes,
                                          bool asked_for_build_ids = true);

}  // namespace xpu
