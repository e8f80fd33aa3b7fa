// The CPU stack of every GPU operation: a uprobe on the injected library's marker, whose arguments
// name the operation, and the BPF program that takes the stack there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/gpu/marker_timing.h"
#include "record/sink/event_sink.h"

namespace xpu {

class Unwinder;

class LaunchSource {
 public:
  // Times a probe at each of the marker's offsets on a copy in this process (about 2 ms), then puts
  // it at the cheapest one. `session`: the only marker calls that count are those with this number.
  // `unwinder`: nullptr walks by frame pointers.
  static Result<LaunchSource> Open(const std::string& library, uint64_t session,
                                   const Unwinder* unwinder);

  LaunchSource(LaunchSource&&) noexcept;
  ~LaunchSource();

  const std::vector<MarkerTiming>& timings() const;
  uint64_t chosen_offset() const;

  void Drain(EventSink& sink);
  void CountLosses(EventSink& sink);

  // Hits taken of one instance, and hits of all that found the ring full.
  uint64_t seen(InstanceId instance) const;
  uint64_t dropped() const;

 private:
  class Impl;
  explicit LaunchSource(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu
