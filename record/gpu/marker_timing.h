// How much a probe on the injected library's marker costs on the running kernel, place by place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <bpf/libbpf.h>

#include "format/base/result.h"
#include "record/gpu/inject_library.h"
#include "record/kernel/probe_links.h"

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

}  // namespace xpu
