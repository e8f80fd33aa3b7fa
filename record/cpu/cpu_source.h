// Samples the CPU stacks of the target, its threads and its children: it owns the perf events (by
// default one on the software CPU clock), the BPF program that walks the stacks, and its ring.
//
// For a program the kernel copies the event into each new task; other scopes use events on each
// CPU, of which the BPF program keeps what belongs to the scope. Samples that find the ring full
// are counted. The software clock is the default because many machines, above all virtual ones,
// have no hardware events.
#pragma once

#include <memory>

#include "format/base/result.h"
#include "record/source/source.h"

namespace xpu {

class CpuSource : public Source {
 public:
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);
  // Tries whether samples can be taken on this machine.
  static Status Try();
  ~CpuSource() override;

  // A program is sampled from its exec on, unless the recording starts paused. Other scopes are
  // sampled from Switch on.
  Status Arm() override;
  // Writes a SampleSource for each event, numbered from 1.
  void Begin(EventSink& sink) override;
  void Switch(const SwitchState& wanted) override;
  void Drain(EventSink& sink) override;
  void CountLosses(EventSink& sink) override;
  void Stop(EventSink& sink, bool may_go_on) override;

 private:
  struct Event;
  class Impl;
  explicit CpuSource(SourceContext& context);

  SourceContext& context_;
  std::unique_ptr<Impl> impl_;  // nullptr until Arm
};

}  // namespace xpu
