// Records when threads did not run, why, with which stack, and who woke them: it owns the BPF
// program at context switches and wake-ups (bpf/off_cpu.bpf.c) and its ring.
//
// Each time is recorded, is in a sum of its thread and state, or is counted as lost; running times
// are in sums, which each part of the capture has its own of. Times that have not ended when the
// recording ends, or is paused, are recorded as open: their stacks are read from the waiting
// threads, and left out if a thread has run meanwhile. Ending them by an interruption of the
// threads was rejected, because some system calls then return early.
//
// Without --off-cpu it only lists where the threads of a process wait while nothing ends on the GPU
// (SourceContext::hanging), with a program that it loads then.
#pragma once

#include <memory>

#include "format/base/result.h"
#include "record/source/source.h"

namespace xpu {

class OffCpuSource : public Source {
 public:
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);
  // Whether it works here, by loading its programs.
  static Status Try();
  ~OffCpuSource() override;

  Status Arm() override;
  void Switch(const SwitchState& wanted) override;
  void Drain(EventSink& sink) override;
  void BeforeNextPart(EventSink& sink) override;
  void CountLosses(EventSink& sink) override;
  // Writes the sums.
  void Stop(EventSink& sink, bool may_go_on) override;

 private:
  class Impl;
  explicit OffCpuSource(SourceContext& context);
  void ListWaits(uint32_t pid, EventSink& sink);

  SourceContext& context_;
  std::unique_ptr<Impl> impl_;  // nullptr until Arm, or until waits are listed
};

}  // namespace xpu
