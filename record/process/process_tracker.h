// Processes as /proc shows them, for a recording without the kernel's own records (no perf
// events): the CUDA processes, when they load the injected library, and when they have ended.
#pragma once

#include <cstdint>
#include <string>

#include "record/process/process_table.h"
#include "record/sink/event_sink.h"

namespace xpu {

// From /proc/PID/stat.
struct ProcessStat {
  uint32_t parent_pid = 0;
  uint64_t start_ticks = 0;  // since boot, of 10 ms each (_SC_CLK_TCK)
};
// {}: the text is invalid.
ProcessStat ParseProcessStat(std::string_view text);

class ProcessTracker {
 public:
  // `processes` observes the sink that events are written to, and outlives this.
  explicit ProcessTracker(ProcessTable& processes) : processes_(processes) {}

  // The process has loaded the library: its fork, its exec if it is another program now.
  void See(uint32_t pid, EventSink& sink);
  void SeeThread(uint32_t pid, uint32_t tid, EventSink& sink) const;
  void SeeEnd(uint32_t pid, EventSink& sink);

 private:
  void Start(uint32_t pid, const std::string& name, EventSink& sink);

  ProcessTable& processes_;
};

}  // namespace xpu
