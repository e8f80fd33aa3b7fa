// The CPU stack of every GPU operation: a uprobe on the injected library's marker, whose arguments
// name the operation, and the BPF program that takes the stack there.
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

// One place in the marker where a probe can sit.
struct MarkerTiming {
  uint64_t offset = 0;
  double hit_ns = 0;  // what one hit costs here
};

// The marker of a library.
struct MarkerPlace {
  std::string library;
  Marker marker;
};

// A uprobe at `offset` into the marker.
Result<PlacedProbes> AttachToMarker(const bpf_program* program, const MarkerPlace& place,
                                    uint64_t offset, int process);

// Probes each of the marker's offsets in turn with `program`, which does nothing, on a copy of the
// library in a helper process. Takes about 2 ms. Removing a probe takes the kernel 100 ms and
// more, which is why a helper does it: it ends on its own meanwhile. Offsets that the kernel
// refuses to probe are left out.
Result<std::vector<MarkerTiming>> TimeMarker(const bpf_program* program, const MarkerPlace& place);

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
