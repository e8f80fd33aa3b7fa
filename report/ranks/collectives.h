// Collectives of NCCL, matched over the ranks that took part in them.
//
// What NCCL says by NVTX counts: the range of a call carries the communicator and the size, and the
// calls of a communicator come in the same order on each of its ranks, so that the n-th one of each
// rank is one collective. NCCL gives them no number. The kernel of a collective is the one that was
// launched inside its range, or, of grouped calls, the next one of the thread, which they share.
// Ranks without such ranges are matched by the order of NCCL's kernels on their streams, and marked
// so.
#pragma once

#include <cstdint>
#include <vector>

#include "report/ranks/collective.h"
#include "report/trace/trace.h"

namespace xpu {

struct Collectives {
  std::vector<Collective> all;     // in order of their first arrival; those without times last
  uint64_t unmatched_kernels = 0;  // of NCCL, without a call or a place in an order
  uint64_t point_to_point = 0;     // calls of ncclSend and ncclRecv, which are not matched
};

// Some kernel is one of NCCL.
bool MayHaveCollectives(const Model& model);

// Of all that the trace has: filters do not change what belongs together.
Collectives FindCollectives(const Trace& trace);

}  // namespace xpu
