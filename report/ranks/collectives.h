// Collectives of NCCL, matched over the ranks that took part in them.
//
// NCCL's NVTX ranges count: the range of a call carries the communicator and the size, and the
// calls of a communicator come in the same order on each of its ranks, so that the n-th one of each
// rank is one collective. NCCL gives them no number. The kernel of a collective is the one that was
// launched inside its range, or, of grouped calls, the next one of the thread, which they share.
// Ranks without such ranges are matched by the order of NCCL's kernels on their streams, and marked
// so.
#pragma once

#include <cstdint>
#include <vector>

#include "report/model/model.h"
#include "report/ranks/rank_calls.h"
#include "report/trace/trace.h"

namespace xpu {

struct Collectives {
  std::vector<Collective> all;     // in order of their first arrival; those without times last
  uint64_t unmatched_kernels = 0;  // of NCCL, without a call or a place in an order
  uint64_t point_to_point = 0;     // calls of ncclSend and ncclRecv, which are not matched
};

// Some kernel is one of NCCL.
bool MayHaveCollectives(const Model& model);

// Uses all that the trace has: filters do not change what belongs together.
Collectives FindCollectives(const Trace& trace);

// ---- host_clocks.cpp
//
// The clocks of hosts, refined by the ends of collectives.
//
// Wall clocks of hosts differ by some hundred microseconds, and drift. All ranks of an all-reduce
// or an all-gather end it at about the same time, so that the differences of their ends show how
// far the clocks are off: a straight line over the recording, which outliers do not move.

// The clocks of Model::host_clocks with what was found, for LoadCaptures; empty: there is only one
// host, or no two hosts have collectives in common. `trace` is as the wall clocks have it.
std::vector<HostClock> RefineHostClocks(const Trace& trace, const Collectives& collectives);

}  // namespace xpu
