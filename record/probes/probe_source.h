// Records hits of probes by the target and its descendants. It owns two kinds: probes that the user
// requests, and, if nothing is loaded into the program, probes at entry (with the stack) and return
// of the launch functions in the CUDA libraries that the program maps.
//
// User probes are attached before the program starts, all or none. Libraries are probed before the
// start where they can be foreseen (process/loader.h), otherwise as soon as their mapping is
// reported; launches in between, about a millisecond, are missed. Launches found this way are
// matched with GPU work by time, so the injected library, which knows correlation ids, is the
// default. Functions that cannot be probed are counted.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "format/stack.h"
#include "record/source/source.h"

namespace xpu {

class ProbeSource : public Source {
 public:
  // Loads the programs. Fails if a probe that the user requests cannot be attached.
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);
  // Tries whether launches can be probed on this machine, and describes how.
  static Result<std::string> Try(const RecordOptions& options,
                                 const std::vector<std::string>& environment);
  ~ProbeSource() override;

  // From here on hits of the program and its descendants are recorded.
  Status Arm() override;
  void Switch(const SwitchState& wanted) override;
  void Drain(EventSink& sink) override;
  void CountLosses(EventSink& sink) override;
  // Removes the probes first.
  void Stop(EventSink& sink, bool may_go_on) override;

 private:
  class Impl;
  ProbeSource(SourceContext& context, std::unique_ptr<Impl> impl);

  SourceContext& context_;
  std::unique_ptr<Impl> impl_;
};

// The frames of a hit without the probed function. `walk` began at the function's first
// instruction, so the caller is its second frame or is missing.
std::vector<Frame> FramesFromCaller(std::span<const Frame> walk, uint64_t caller);

}  // namespace xpu
