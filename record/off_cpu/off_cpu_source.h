// Records when threads did not run, why, and with which stack: it owns the BPF program at context
// switches (bpf/off_cpu.bpf.c) and its ring.
//
// Each completed time is recorded, is in a sum of its thread and state, or is counted as lost.
// Times that have not ended when the recording ends, or that a pause cuts, are not recorded.
#pragma once

#include <memory>

#include "format/base/result.h"
#include "record/source/source.h"

namespace xpu {

class OffCpuSource : public Source {
 public:
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);
  ~OffCpuSource() override;

  Status Arm() override;
  void Switch(const SwitchState& wanted) override;
  void Drain(EventSink& sink) override;
  void CountLosses(EventSink& sink) override;
  // Writes the sums.
  void Stop(EventSink& sink, bool may_go_on) override;

 private:
  class Impl;
  explicit OffCpuSource(SourceContext& context);

  SourceContext& context_;
  std::unique_ptr<Impl> impl_;  // nullptr until Arm
};

}  // namespace xpu
