// Processes, threads and mappings of the target and all its children, from perf's side-band
// records: one dummy event for each CPU, inherited, enabled by the target's exec. Of other subjects
// it is what happens on the CPUs, from the opening on.
//
// Who must act on a mapping at once is woken by a second event of each CPU, for mappings alone,
// whose records are thrown away. The first wakes when its ring fills: when it woke with every
// record, a program that changed its name all the time was five times as slow. Two rings that share
// the records were rejected: forks and exits come with mappings and with names alike, so some would
// be in both, and which of them found no room in one could not be counted.
#pragma once

#include <functional>
#include <vector>

#include "format/base/result.h"
#include "record/kernel/perf_records.h"
#include "record/kernel/perf_ring.h"
#include "record/options/scope.h"
#include "record/sink/event_sink.h"

namespace xpu {

class TaskRecords {
 public:
  // kAtOnce: descriptors become readable with every mapping, for who must act on it.
  enum class Wakeup { kAtWatermark, kAtOnce };

  // Before the exec of a program.
  static Result<TaskRecords> Open(const Scope& scope, Wakeup wakeup = Wakeup::kAtWatermark);

  // To wait on.
  std::vector<int> fds() const;

  // Gives every record to `take`, and counts invalid ones in the sink.
  using Take = std::function<void(const PerfRecord&)>;
  void Drain(EventSink& sink, const Take& take);
  // A mapping has been seen, or is about to be: the wake-up may come before its record.
  bool was_woken() const { return was_woken_; }
  // What found no room.
  void CountLosses(EventSink& sink);

 private:
  static Result<TaskRecords> OpenRings(const Scope& scope, Wakeup wakeup, size_t ring_bytes);
  void ResetWakeups(uint64_t now_ns);

  std::vector<PerfRing> rings_;
  std::vector<PerfRing> wakeups_;
  int wakes_in_turn_ = 0;    // without a pause
  uint64_t blocked_ns_ = 0;  // when the wake-ups were; 0: they are not
  bool was_woken_ = false;
  bool has_lost_count_ = false;
  bool has_build_ids_ = false;
  uint64_t lost_ = 0;  // as records reported; after the last one more may have been lost
  uint64_t lost_counted_ = 0;
};

// One record as an event of the capture.
void WritePerfRecord(const PerfRecord& record, EventSink& sink);

}  // namespace xpu
