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
#include "record/kernel/perf_records.h"
#include "record/options/options.h"
#include "record/options/subject.h"
#include "record/sink/event_sink.h"

namespace xpu {

class Unwinder;

class ProbeSource {
 public:
  // Whether the options ask for any.
  static bool IsWanted(const RecordOptions& options);
  // Loads the programs. Fails when what the user named cannot be probed.
  // `unwinder`: nullptr walks by frame pointers.
  static Result<ProbeSource> Open(const RecordOptions& options, const Subject& subject,
                                  const std::vector<std::string>& environment,
                                  const Unwinder* unwinder);

  ProbeSource(ProbeSource&&) noexcept;
  ~ProbeSource();

  // Between the target's fork and its exec: from here on it and its descendants count.
  Status Arm(pid_t target);
  // Records hits from now on, or none.
  void Switch(bool on);

  // A recorded process mapped a file; Drain probes it.
  void SeeMapping(const PerfMapping& mapping);

  void Drain(EventSink& sink);
  void CountLosses(EventSink& sink);
  // Removes the probes and takes what is left. Processes that go on are a loss, unless that is
  // what was asked for (`may_go_on`).
  void Stop(EventSink& sink, bool may_go_on);

  // How the probes are placed, and the functions found in the files probed so far, for people.
  std::string Describe() const;

 private:
  class Impl;
  explicit ProbeSource(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The frames of a hit: `walk` began at the first instruction of the function, where it has the
// caller as its second frame or has missed it. The function itself is left out.
std::vector<Frame> FramesFromCaller(std::span<const Frame> walk, uint64_t caller);

}  // namespace xpu
