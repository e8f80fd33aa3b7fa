// Processes, threads and mappings of the target and all its children, from perf's side-band
// records: one dummy event for each CPU, inherited, enabled by the target's exec. Of other subjects
// it is what happens on the CPUs, from the opening on.
#pragma once

#include <functional>
#include <vector>

#include "format/base/result.h"
#include "record/cpu/perf_records.h"
#include "record/cpu/perf_ring.h"
#include "record/output/event_sink.h"
#include "record/subject.h"

namespace xpu {

class TaskSource {
 public:
  // kAtOnce: the descriptors become readable with every record, for who must act on a mapping.
  enum class Wakeup { kHalfFull, kAtOnce };

  // Before the exec of a program.
  static Result<TaskSource> Open(const Subject& subject, Wakeup wakeup = Wakeup::kHalfFull);

  // To wait on.
  std::vector<int> fds() const;

  // Gives every record to `take`, and counts in the sink what makes no sense.
  using Take = std::function<void(const PerfRecord&)>;
  void Drain(EventSink& sink, const Take& take);
  // What found no room.
  void CountLosses(EventSink& sink);

 private:
  std::vector<PerfRing> rings_;
  bool has_lost_count_ = false;
  bool has_build_ids_ = false;
  uint64_t lost_ = 0;  // as records told; after the last one more may have been lost
  uint64_t lost_counted_ = 0;
};

// One record as an event of the capture.
void WritePerfRecord(const PerfRecord& record, EventSink& sink);

}  // namespace xpu
