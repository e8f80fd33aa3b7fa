// Stacks by unwind tables, all of it: tables, BPF maps, and what each process has mapped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/event_sink.h"
#include "record/options.h"
#include "record/perf_records.h"
#include "record/unwind_maps.h"
#include "record/unwind_processes.h"
#include "record/unwind_tables.h"

namespace xpu {

// Whether this kernel can walk by tables (bpf_loop, Linux 5.17).
bool CanWalkByTables();

class Unwinder {
 public:
  explicit Unwinder(UnwindTables& tables, UnwindMaps maps)
      : tables_(tables), maps_(std::move(maps)), processes_(maps_, tables_) {}
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  const UnwindMaps& maps() const { return maps_; }
  // Before the target's exec: from then on the BPF programs follow it and its descendants.
  Status Follow(pid_t target);
  void TakeTables() { processes_.TakeFinishedTables(UINT64_MAX); }
  void See(const PerfRecord& record) {
    processes_.See(record);
    last_seen_ns_ = MonotonicNs();
  }
  // A process has begun, or loaded something, a moment ago: more of it is likely.
  bool IsBusy(uint64_t now_ns) const {
    return processes_.has_finished_tables() || now_ns - last_seen_ns_ < kBusyNs;
  }
  // Tells the BPF programs what is new.
  void Apply(EventSink& sink);

 private:
  UnwindTables& tables_;
  UnwindMaps maps_;
  UnwindProcesses processes_;
  static constexpr uint64_t kBusyNs = 50'000'000;
  uint64_t last_seen_ns_ = 0;
};

// Asks for the tables of what `command` will map at its start, and waits a little for them.
void PrepareTables(UnwindTables& tables, const std::string& program,
                   const std::vector<std::string>& environment);

// A program's maps and its walk_by_tables; `maps`: nullptr walks by frame pointers. Between its
// open and its load.
template <typename Skeleton>
Status UseTables(Skeleton& skeleton, const UnwindMaps* maps) {
  skeleton.rodata->walk_by_tables = maps != nullptr;
  return maps != nullptr ? maps->ShareWith(skeleton.obj) : UnwindMaps::LeaveOut(skeleton.obj);
}

}  // namespace xpu
