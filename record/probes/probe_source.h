// Probes, hit by the target and its descendants: those that the user asks for, and, for GPU
// launches of a program into which nothing is loaded, those at the launch functions of the CUDA
// libraries that the program maps, at their entry (with the stack) and at their return.
//
// Of the latter a file is probed before the program starts where it can be foreseen
// (probe_libraries.h) and otherwise as soon as its mapping is known; launches in between, about a
// millisecond, are missed.
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
  // Loads the programs. Fails when what the user named cannot be probed.
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);
  // Whether and how launches can be probed on this machine, for people, by trying it.
  static Result<std::string> Try(const RecordOptions& options,
                                 const std::vector<std::string>& environment);
  ~ProbeSource() override;

  // From here on the program and its descendants count.
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

// The frames of a hit: `walk` began at the first instruction of the function, where it has the
// caller as its second frame or has missed it. The function itself is left out.
std::vector<Frame> FramesFromCaller(std::span<const Frame> walk, uint64_t caller);

}  // namespace xpu
