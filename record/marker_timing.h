// How much a probe on the injected library's marker costs on the running kernel, place by place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <bpf/libbpf.h>

#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

// One place in the marker where a probe can sit.
struct MarkerTiming {
  uint64_t offset = 0;
  double hit_ns = 0;  // what one hit costs here
};

using BpfLink = Handle<bpf_link, bpf_link__destroy>;

inline constexpr int kThisProcess = 0;
inline constexpr int kEveryProcess = -1;

// A uprobe at `offset` into the marker of `library`.
Result<BpfLink> AttachToMarker(const bpf_program* program, const std::string& library,
                               uint64_t offset, int process);

// Probes each of the marker's offsets in turn with `program`, which does nothing, on a copy of the
// library in a helper process. Takes about 2 ms. Removing a probe takes the kernel 100 ms and
// more, which is why a helper does it: it ends on its own meanwhile. Offsets that the kernel
// refuses to probe are left out.
Result<std::vector<MarkerTiming>> TimeMarker(const bpf_program* program,
                                             const std::string& library);

}  // namespace xpu
