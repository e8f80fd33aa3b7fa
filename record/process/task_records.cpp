#include "record/process/task_records.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/kernel/kernel_features.h"
#include "record/kernel/perf_event.h"

namespace xpu {
namespace {

// With its control page within the 516 KiB that kernel.perf_event_mlock_kb grants each CPU by
// default. Holds about 2000 mappings or 4000 names; read every few hundredths of a second, and when
// a quarter full.
constexpr size_t kRingBytes = size_t{256} << 10;
// Used if more memory may be locked: a program creates 4000 names in 5 ms, and on a fully loaded
// machine the recorder may wait 100 ms for a CPU.
constexpr size_t kLargestRingBytes = size_t{4} << 20;
constexpr size_t kAllRingsBytes = size_t{64} << 20;

// Returns a power of two.
size_t RingBytesFor(size_t cpus) {
  size_t bytes = kLargestRingBytes;
  while (bytes > kRingBytes && bytes * cpus > kAllRingsBytes) bytes /= 2;
  return bytes;
}

perf_event_attr CommonAttributes(const Scope& scope) {
  perf_event_attr attributes = PerfAttributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  attributes.sample_id_all = 1;
  attributes.disabled = scope.is_program();
  attributes.enable_on_exec = scope.is_program();
  attributes.inherit = scope.is_program();
  attributes.mmap = 1;  // executable mappings
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.watermark = 1;
  // The event counts nothing; without this an unprivileged user may not open it.
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  return attributes;
}

perf_event_attr TaskAttributes(const Scope& scope) {
  perf_event_attr attributes = CommonAttributes(scope);
  attributes.mmap2 = 1;
  attributes.build_id = MayUse(KernelFeature::kBuildIdRecords);
  attributes.comm = 1;
  attributes.comm_exec = 1;
  attributes.task = 1;
  attributes.wakeup_watermark = kRingBytes / 4;  // also for larger rings
  if (MayUse(KernelFeature::kLostCount)) attributes.read_format = PERF_FORMAT_LOST;
  return attributes;
}

perf_event_attr WakeupAttributes(const Scope& scope) {
  perf_event_attr attributes = CommonAttributes(scope);
  attributes.wakeup_watermark = 1;
  return attributes;
}

// Clears the attributes that the kernel does not know.
UniqueFd OpenEvent(perf_event_attr& attributes, pid_t pid, int cpu) {
  UniqueFd event = OpenPerfEvent(attributes, pid, cpu);
  if (!event && errno == EINVAL && attributes.read_format != 0) {
    attributes.read_format = 0;
    event = OpenPerfEvent(attributes, pid, cpu);
  }
  if (!event && errno == EINVAL && attributes.build_id) {
    attributes.build_id = 0;
    event = OpenPerfEvent(attributes, pid, cpu);
  }
  return event;
}

struct RecordWriter {
  EventSink& sink;

  void operator()(const PerfMapping& record) const {
    Mapping mapping;
    mapping.time_ns = record.origin.time_ns;
    mapping.pid = record.pid;
    mapping.tid = record.tid;
    mapping.start_address = record.address;
    mapping.size_bytes = record.size_bytes;
    mapping.file_offset = record.file_offset;
    mapping.protection = record.protection;
    mapping.flags = record.flags;
    mapping.path = sink.Intern(record.path);
    mapping.build_id = sink.Intern(
        {reinterpret_cast<const char*>(record.build_id.data()), record.build_id.size()});
    mapping.device_major = record.device_major;
    mapping.device_minor = record.device_minor;
    mapping.inode = record.inode;
    sink.Write(mapping);
  }
  void operator()(const PerfComm& record) const {
    ProcessEvent event;
    event.time_ns = record.origin.time_ns;
    event.kind = record.is_exec ? ProcessEventKind::kExec : ProcessEventKind::kName;
    event.pid = record.pid;
    event.tid = record.tid;
    event.name = sink.Intern(record.name);
    sink.Write(event);
  }
  void operator()(const PerfTask& record) const {
    ProcessEvent event;
    event.time_ns = record.time_ns;
    event.kind = record.is_exit ? ProcessEventKind::kExit : ProcessEventKind::kFork;
    event.pid = record.pid;
    event.tid = record.tid;
    event.parent_pid = record.parent_pid;
    event.parent_tid = record.parent_tid;
    sink.Write(event);
  }
  void operator()(const PerfLost&) const {}  // counted by TaskRecords
  void operator()(const PerfOther&) const {}
};

}  // namespace

void WritePerfRecord(const PerfRecord& record, EventSink& sink) {
  std::visit(RecordWriter{sink}, record);
}

Result<TaskRecords> TaskRecords::Open(const Scope& scope, Wakeup wakeup) {
  if (const size_t bytes = RingBytesFor(OnlineCpus().size()); bytes > kRingBytes) {
    auto source = OpenRings(scope, wakeup, bytes);
    if (source.ok()) return source;
  }
  return OpenRings(scope, wakeup, kRingBytes);
}

Result<TaskRecords> TaskRecords::OpenRings(const Scope& scope, Wakeup wakeup, size_t ring_bytes) {
  TaskRecords source;
  perf_event_attr attributes = TaskAttributes(scope);
  perf_event_attr wakeup_attributes = WakeupAttributes(scope);
  // Enough for a record with the longest path.
  const auto wakeup_bytes = 2 * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const pid_t pid = scope.is_program() ? scope.program : -1;
  for (int cpu : OnlineCpus()) {
    UniqueFd event = OpenEvent(attributes, pid, cpu);
    if (!event && errno == ENODEV) continue;  // the CPU went offline
    if (!event) {
      return SystemError(Format("perf_event_open(dummy, cpu {})", cpu), errno,
                         Format("run as root, or: sysctl kernel.perf_event_paranoid=2 (it is {})",
                                PerfParanoidLevel()));
    }
    XPU_ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Map(std::move(event), ring_bytes));
    source.rings_.push_back(std::move(ring));
    if (wakeup == Wakeup::kAtWatermark) continue;
    UniqueFd waking = OpenEvent(wakeup_attributes, pid, cpu);
    if (!waking && errno == ENODEV) continue;
    if (!waking) return SystemError(Format("perf_event_open(mappings, cpu {})", cpu), errno);
    XPU_ASSIGN_OR_RETURN(PerfRing wakeups, PerfRing::Map(std::move(waking), wakeup_bytes));
    source.wakeups_.push_back(std::move(wakeups));
  }
  source.has_lost_count_ = attributes.read_format != 0;
  source.has_build_ids_ = attributes.build_id != 0;
  return source;
}

std::vector<int> TaskRecords::fds() const {
  std::vector<int> fds;
  for (const PerfRing& ring : rings_) fds.push_back(ring.fd());
  for (const PerfRing& ring : wakeups_) fds.push_back(ring.fd());
  return fds;
}

// Called before the records are read, so that a later mapping wakes the recorder again. A program
// that maps code all the time wakes it once a millisecond at most: each wake-up interrupts the
// program, and was most of the cost.
void TaskRecords::ResetWakeups(uint64_t now_ns) {
  constexpr uint64_t kPaceNs = 1'000'000;
  constexpr int kMaxInTurn = 20;  // more than a program needs at its start
  if (blocked_ns_ != 0 && now_ns - blocked_ns_ < kPaceNs) return;
  was_woken_ = false;
  for (PerfRing& ring : wakeups_) was_woken_ |= ring.Discard();  // a blocked ring counts as full
  if (std::exchange(blocked_ns_, 0) != 0) return;
  wakes_in_turn_ = was_woken_ ? wakes_in_turn_ + 1 : 0;
  if (wakes_in_turn_ <= kMaxInTurn) return;
  for (PerfRing& ring : wakeups_) ring.Block();
  blocked_ns_ = now_ns;
}

void TaskRecords::Drain(EventSink& sink, const Take& take) {
  ResetWakeups(MonotonicNs());
  for (PerfRing& ring : rings_) {
    uint64_t senseless = ring.Drain([&](std::span<const std::byte> bytes) {
      if (auto record = ParsePerfRecord(bytes, has_build_ids_)) {
        if (const auto* lost = std::get_if<PerfLost>(&*record)) lost_ += lost->count;
        take(*record);
      } else {
        sink.losses().Add(LossKind::kPerfRecordsLost, 1, 0, {}, "unknown record from the kernel");
      }
    });
    sink.losses().Add(LossKind::kPerfRecordsLost, senseless, 0, {}, "invalid ring buffer");
  }
}

// The kernel writes a record about lost records only with the next one that fits, which may never
// come.
void TaskRecords::CountLosses(EventSink& sink) {
  uint64_t lost = lost_;
  if (has_lost_count_) {
    lost = 0;
    for (const PerfRing& ring : rings_) lost += ring.ReadLost();
  }
  sink.losses().Add(LossKind::kPerfRecordsLost, lost - std::min(lost, lost_counted_));
  lost_counted_ = std::max(lost, lost_counted_);
}

}  // namespace xpu
