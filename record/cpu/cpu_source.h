// CPU samples of the target, its threads and its children: sampling events, by default one on the
// software CPU clock, which the kernel copies into every new task, and the BPF program that takes
// the stacks. Of other subjects the events are those of the CPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "format/base/result.h"
#include "record/options/cpu_events.h"
#include "record/options/subject.h"
#include "record/sink/event_sink.h"

namespace xpu {

class Unwinder;

class CpuSource {
 public:
  // Before the exec of a program: sampling begins with it, unless it starts paused. Of other
  // subjects it begins with Switch. `unwinder`: nullptr walks by frame pointers.
  static Result<CpuSource> Open(const Subject& subject, std::span<const CpuEvent> events,
                                uint64_t frequency_hz, const Unwinder* unwinder);

  CpuSource(CpuSource&&) noexcept;
  ~CpuSource();

  // Writes a SampleSource for each event, numbered from 1.
  void Describe(EventSink& sink) const;
  // Takes samples from now on, or none.
  void Switch(bool on);
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
