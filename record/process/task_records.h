// Records processes, threads and mappings of the target and all its children from perf's side-band
// records: one dummy event per CPU, inherited and enabled by the target's exec. Other scopes record
// everything on each CPU, from the opening on.
//
// A second event per CPU, for mappings only, wakes sources that must act at once; its records are
// discarded. The first event wakes the recorder only when its ring fills: when it woke with every
// record, a program that changed its name all the time was five times as slow. Splitting the
// records between two rings was rejected: forks and exits come with both mappings and names, so
// some would be in both rings, and it could not be counted which of them were lost in one.
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
  // kAtOnce: the descriptors become readable with every mapping, for sources that must act on it.
  enum class Wakeup { kAtWatermark, kAtOnce };

  // Called before the program's exec.
  static Result<TaskRecords> Open(const Scope& scope, Wakeup wakeup = Wakeup::kAtWatermark);

  // Descriptors to wait on.
  std::vector<int> fds() const;

  // Passes each record to `take`, and counts invalid ones in the sink.
  using Take = std::function<void(const PerfRecord&)>;
  void Drain(EventSink& sink, const Take& take);
  // True if a mapping was reported or is about to be: the wake-up may come before its record.
  bool was_woken() const { return was_woken_; }
  // Counts records that did not fit.
  void CountLosses(EventSink& sink);

 private:
  static Result<TaskRecords> OpenRings(const Scope& scope, Wakeup wakeup, size_t ring_bytes);
  void ResetWakeups(uint64_t now_ns);

  std::vector<PerfRing> rings_;
  std::vector<PerfRing> wakeups_;
  int wakes_in_turn_ = 0;    // without a pause
  uint64_t blocked_ns_ = 0;  // when wake-ups were blocked; 0: they are not
  bool was_woken_ = false;
  bool has_lost_count_ = false;
  bool has_build_ids_ = false;
  uint64_t lost_ = 0;  // as reported by records; more may have been lost after the last one
  uint64_t lost_counted_ = 0;
};

// Writes one record as an event of the capture.
void WritePerfRecord(const PerfRecord& record, EventSink& sink);

}  // namespace xpu
