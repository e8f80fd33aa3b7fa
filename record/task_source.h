// Processes, threads and mappings of the target and all its children, from perf's side-band
// records: one dummy event for each CPU, inherited, enabled by the target's exec.
#pragma once

#include <functional>
#include <vector>

#include <sys/types.h>

#include "format/base/result.h"
#include "record/event_sink.h"
#include "record/perf_records.h"
#include "record/perf_ring.h"

namespace xpu {

class TaskSource {
 public:
  // kAtOnce: the descriptors become readable with every record, for who must act on a mapping.
  enum class Wakeup { kHalfFull, kAtOnce };

  // Before the exec of `target`.
  static Result<TaskSource> Open(pid_t target, Wakeup wakeup = Wakeup::kHalfFull);

  // To wait on.
  std::vector<int> fds() const;

  using See = std::function<void(const PerfRecord&)>;

  // `see`, where there is one, is also told of each record.
  void Drain(EventSink& sink, const See& see = {});

 private:
  std::vector<PerfRing> rings_;
};

// One record as an event of the capture.
void WritePerfRecord(const PerfRecord& record, EventSink& sink);

}  // namespace xpu
