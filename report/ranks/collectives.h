// Collectives of NCCL and the like, matched over the ranks that took part in them.
//
// NCCL's NVTX ranges count: the range of a call carries the communicator and the size. The kernel
// of a collective is the one that was launched inside its range, or, of grouped calls, the next one
// of the thread, which they share. A call that put its kernel into a CUDA graph stands for one in
// each replay. Ranks without such ranges, which are those that were attached to, and kernels of
// other libraries are matched by the order of the kernels on their streams, and marked so. Which
// calls of a communicator are one collective, call_order.h finds. Messages are matched by sender
// and receiver.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/model/load.h"
#include "report/model/model.h"
#include "report/ranks/rank_calls.h"
#include "report/trace/trace.h"

namespace xpu {

struct Collectives {
  std::vector<Collective> all;      // in order of their first arrival; those without times last
  uint64_t unmatched_kernels = 0;   // of NCCL, without a call or a place in an order
  uint64_t hidden = 0;              // RankCalls::hidden
  std::set<uint32_t> several = {};  // ranks, in Job::ranks(), whose process drives several GPUs

  bool DrivesSeveral(uint32_t rank) const { return several.contains(rank); }
};

// Some kernel is one of NCCL, or may be a collective of another library.
bool MayHaveCollectives(const Model& model);

// Matches calls, which ranks of hosts made: `host_of`, by rank, is the host's place in `clocks`.
Collectives MatchCalls(const RankCalls& calls, const std::vector<uint32_t>& host_of,
                       const std::vector<HostClock>& clocks);
// Uses all that the trace has: filters do not change what belongs together.
Collectives FindCollectives(const Trace& trace);
// The same, found once.
const Collectives& CollectivesOf(const Analysis& analysis);
// Returns the collectives with a part that is shown, each with all of its ranks. Without a filter
// they are those of CollectivesOf(), which are many, and not copied: the analysis must outlive
// them.
std::shared_ptr<const Collectives> ShownCollectives(const Analysis& analysis);
bool IsShown(const Analysis& analysis, const CollectivePart& part);

// ---- host_clocks.cpp
//
// The clocks of hosts, refined by the ends of collectives.
//
// Wall clocks of hosts differ by some hundred microseconds, and drift. All ranks of an all-reduce
// or an all-gather end it at about the same time, so that the differences of their ends show how
// far the clocks are off: a straight line over the recording, which outliers do not move.

// Each communicator is found by the order of its kernels, whatever NVTX says: that needs no calls.
// A RefineClocks; clocks stay as they are if no two hosts have collectives in common.
std::vector<HostClock> RefineHostClocks(std::span<const CaptureOnClock> captures,
                                        std::vector<HostClock> clocks);

}  // namespace xpu
