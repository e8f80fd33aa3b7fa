// The uprobe on the injected library's marker and the BPF program that takes the CPU stack there.
// The marker's arguments identify the GPU operation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <bpf/libbpf.h>

#include "format/base/result.h"
#include "record/gpu/inject_library.h"
#include "record/kernel/probe_links.h"
#include "record/sink/event_sink.h"

namespace xpu {

// An offset in the marker where a probe can be attached.
struct MarkerTiming {
  uint64_t offset = 0;
  double hit_ns = 0;  // measured cost of one hit
};

// The marker of one library file.
struct MarkerLocation {
  std::string library;
  Marker marker;
};

// Attaches `program` at `offset` in the marker.
Result<AttachedProbes> AttachToMarker(const bpf_program* program, const MarkerLocation& location,
                                      uint64_t offset, int process);

// Attaches `program`, which does nothing, to each offset of the marker in turn, in a helper process
// that has its own copy of the library. Takes about 2 ms. The kernel needs 100 ms and more to
// remove a probe; the helper does that on its own while it exits. Offsets that the kernel refuses
// to probe are left out.
Result<std::vector<MarkerTiming>> TimeMarker(const bpf_program* program,
                                             const MarkerLocation& location);

class Unwinder;

class LaunchSource {
 public:
  // Times a probe at each offset of the marker, then attaches it at the cheapest one. `session`:
  // calls of the marker with another number are ignored. `unwinder`: nullptr to walk by frame
  // pointers.
  static Result<LaunchSource> Open(const std::string& library, uint64_t session,
                                   const Unwinder* unwinder);

  LaunchSource(LaunchSource&&) noexcept;
  ~LaunchSource();

  const std::vector<MarkerTiming>& timings() const;
  uint64_t chosen_offset() const;

  void Drain(EventSink& sink);
  void CountLosses(EventSink& sink);

  // Hits recorded for one instance, and hits of all instances that were dropped because the ring
  // was full.
  uint64_t seen(InstanceId instance) const;
  uint64_t dropped() const;

 private:
  class Impl;
  explicit LaunchSource(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu
