// Processes, threads and mappings of the target and all its children, from perf's side-band
// records: one dummy event for each CPU, inherited, enabled by the target's exec.
#pragma once

#include <vector>

#include <sys/types.h>

#include "format/base/result.h"
#include "record/event_sink.h"
#include "record/perf_records.h"
#include "record/perf_ring.h"

namespace xpu {

class TaskSource {
 public:
  // Before the exec of `target`.
  static Result<TaskSource> Open(pid_t target);

  // To wait on: readable when a ring is half full.
  std::vector<int> fds() const;

  void Drain(EventSink& sink);

 private:
  std::vector<PerfRing> rings_;
};

// One record as an event of the capture.
void WritePerfRecord(const PerfRecord& record, EventSink& sink);

}  // namespace xpu
