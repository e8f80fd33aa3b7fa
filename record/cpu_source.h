// CPU samples of the target, its threads and its children: sampling events, by default one on the
// software CPU clock, which the kernel copies into every new task, and the BPF program that takes
// the stacks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <sys/types.h>

#include "format/base/result.h"
#include "record/cpu_events.h"
#include "record/event_sink.h"

namespace xpu {

class UnwindMaps;

class CpuSource {
 public:
  // Before the exec of `target`: sampling begins with it. `maps`: for walks by tables, nullptr: by
  // frame pointers.
  static Result<CpuSource> Open(pid_t target, std::span<const CpuEvent> events,
                                uint64_t frequency_hz, const UnwindMaps* maps);

  CpuSource(CpuSource&&) noexcept;
  ~CpuSource();

  // Writes a SampleSource for each event, numbered from 1.
  void Describe(EventSink& sink) const;
  void Drain(EventSink& sink);
  // Puts the kernel side's losses since the last call into the ledger.
  void CountLosses(EventSink& sink);

 private:
  struct Event;
  class Impl;
  explicit CpuSource(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu
