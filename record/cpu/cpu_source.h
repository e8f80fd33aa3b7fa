// CPU samples of the target, its threads and its children: sampling events, by default one on the
// software CPU clock, which the kernel copies into every new task, and the BPF program that takes
// the stacks. Of other subjects the events are those of the CPUs.
#pragma once

#include <memory>

#include "format/base/result.h"
#include "record/source/source.h"

namespace xpu {

class CpuSource : public Source {
 public:
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);
  // Whether samples can be taken on this machine, by trying it.
  static Status Try();
  ~CpuSource() override;

  // Sampling begins with the program's exec, unless it starts paused. In other scopes it begins
  // with Switch.
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
  std::unique_ptr<Impl> impl_;  // nullptr: not armed
};

}  // namespace xpu
