// The kinds of records that a session asks CUPTI for.
#pragma once

#include <cstdint>

#include "cupti_inject/cupti_loader.h"

namespace xpu::inject {

struct ActivityKind {
  uint32_t kind;
  const char* name;
};
// Waits are reported by waits.h. GRAPH_TRACE first: with it a graph replay is one record; node
// records and the MEMCPY kind alone cost every replay 40 % (FACTS: 102 us against 73).
inline constexpr ActivityKind kActivityKinds[] = {
    {cupti::kKindGraphTrace, "graph"}, {cupti::kKindConcurrentKernel, "kernel"},
    {cupti::kKindMemcpy, "memcpy"},    {cupti::kKindMemcpy2, "peer memcpy"},
    {cupti::kKindMemset, "memset"},    {cupti::kKindOverhead, "overhead"},
    {cupti::kKindDevice, "device"},    {cupti::kKindContext, "context"},
    {cupti::kKindJit, "JIT"},
};

inline void DisableActivities(const cupti::Functions& cupti) {
  for (const ActivityKind& kind : kActivityKinds) cupti.disable_kind(kind.kind);
  cupti.disable_kind(cupti::kKindMemory2);
}

}  // namespace xpu::inject
