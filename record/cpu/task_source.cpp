#include "record/cpu/task_source.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/cpu/perf_event.h"
#include "record/machine/kernel_features.h"

namespace xpu {
namespace {

// With its control page within the 516 KiB that kernel.perf_event_mlock_kb grants each CPU by
// default. About 2000 records, read every few hundredths of a second and at half full.
constexpr size_t kRingBytes = size_t{256} << 10;

perf_event_attr TaskAttributes(const Subject& subject, TaskSource::Wakeup wakeup) {
  perf_event_attr attributes = PerfAttributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  attributes.sample_id_all = 1;
  attributes.disabled = subject.is_program();
  attributes.enable_on_exec = subject.is_program();
  attributes.inherit = subject.is_program();
  attributes.mmap = 1;  // executable mappings
  attributes.mmap2 = 1;
  attributes.build_id = MayUse(KernelFeature::kBuildIdRecords);
  attributes.comm = 1;
  attributes.comm_exec = 1;
  attributes.task = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.watermark = 1;
  attributes.wakeup_watermark = wakeup == TaskSource::Wakeup::kAtOnce ? 1 : kRingBytes / 2;
  if (MayUse(KernelFeature::kLostCount)) attributes.read_format = PERF_FORMAT_LOST;
  // It counts nothing; without this an unprivileged user may not open it.
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  return attributes;
}

// What the kernel does not know is left out of `attributes`.
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
  void operator()(const PerfLost&) const {}  // TaskSource counts them
  void operator()(const PerfOther&) const {}
};

}  // namespace

void WritePerfRecord(const PerfRecord& record, EventSink& sink) {
  std::visit(RecordWriter{sink}, record);
}

Result<TaskSource> TaskSource::Open(const Subject& subject, Wakeup wakeup) {
  TaskSource source;
  perf_event_attr attributes = TaskAttributes(subject, wakeup);
  const pid_t pid = subject.is_program() ? subject.program : -1;
  for (int cpu : OnlineCpus()) {
    UniqueFd event = OpenEvent(attributes, pid, cpu);
    if (!event && errno == ENODEV) continue;  // went offline
    if (!event) {
      return SystemError(Format("perf_event_open(dummy, cpu {})", cpu), errno,
                         Format("run as root, or: sysctl kernel.perf_event_paranoid=2 (it is {})",
                                PerfParanoidLevel()));
    }
    XPU_ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Map(std::move(event), kRingBytes));
    source.rings_.push_back(std::move(ring));
  }
  source.has_lost_count_ = attributes.read_format != 0;
  source.has_build_ids_ = attributes.build_id != 0;
  return source;
}

std::vector<int> TaskSource::fds() const {
  std::vector<int> fds;
  for (const PerfRing& ring : rings_) fds.push_back(ring.fd());
  return fds;
}

void TaskSource::Drain(EventSink& sink, const Take& take) {
  for (PerfRing& ring : rings_) {
    uint64_t senseless = ring.Drain([&](std::span<const std::byte> bytes) {
      if (auto record = ParsePerfRecord(bytes, has_build_ids_)) {
        if (const auto* lost = std::get_if<PerfLost>(&*record)) lost_ += lost->count;
        take(*record);
      } else {
        sink.losses().Add(LossKind::kPerfRecordsLost, 1, 0, {},
                          "record of the kernel not understood");
      }
    });
    sink.losses().Add(LossKind::kPerfRecordsLost, senseless, 0, {}, "ring not understood");
  }
}

// A record that tells of lost ones is only written with the next that finds room: there may be
// none.
void TaskSource::CountLosses(EventSink& sink) {
  uint64_t lost = lost_;
  if (has_lost_count_) {
    lost = 0;
    for (const PerfRing& ring : rings_) lost += ring.ReadLost();
  }
  sink.losses().Add(LossKind::kPerfRecordsLost, lost - std::min(lost, lost_counted_));
  lost_counted_ = std::max(lost, lost_counted_);
}

}  // namespace xpu
