// Follows processes through /proc, for recordings without the kernel's records (no perf events):
// CUDA processes, from when they load the injected library until they end.
#pragma once

#include <cstdint>
#include <string>

#include "record/process/process_table.h"
#include "record/sink/event_sink.h"

namespace xpu {

class ProcessTracker {
 public:
  // `processes` observes the sink that events are written to, and outlives this object.
  explicit ProcessTracker(ProcessTable& processes) : processes_(processes) {}

  // Called when the process has loaded the library: writes its fork, and its exec if it runs
  // another program now.
  void Observe(uint32_t pid, EventSink& sink);
  void ObserveThread(uint32_t pid, uint32_t tid, EventSink& sink) const;
  void ObserveEnd(uint32_t pid, EventSink& sink);

 private:
  void Start(uint32_t pid, const std::string& name, EventSink& sink);

  ProcessTable& processes_;
};

}  // namespace xpu
