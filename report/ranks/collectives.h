// Collectives of NCCL, matched over the ranks that took part in them.
//
// What NCCL says by NVTX counts: the range of a call carries the communicator and the size, and the
// calls of a communicator come in the same order on each of its ranks, so that the n-th one of each
// rank is one collective. NCCL gives them no number. The kernel of a collective is the one that was
// launched inside of its range, or, of grouped calls, the next one of the thread, which they share.
// Ranks without such ranges are matched by the order of NCCL's kernels on their streams, and marked
// so.
//
// A rank arrives with the start of its kernel, which then waits for the others. The collective is
// over when its last kernel ends.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "report/trace/trace.h"

namespace xpu {

enum class CollectiveMatch : uint8_t {
  kByNvtx,   // communicator and sequence number
  kByOrder,  // the n-th kernel of the stream
};

// The part of one rank.
struct CollectivePart {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  uint32_t rank = 0;        // in Job::ranks()
  uint32_t work = kNone;    // its kernel, in Correlation::work; kNone: there is no record of it
  uint32_t range = kNone;   // its call, in NvtxRanges::all()
  uint64_t called_ns = 0;   // when the program called, or launched the kernel
  uint64_t arrived_ns = 0;  // when the kernel started; 0, like end_ns, without one
  uint64_t end_ns = 0;
  bool is_grouped = false;  // the kernel is that of other collectives too

  bool has_times() const { return end_ns != 0; }
};

struct Collective {
  uint64_t communicator = 0;  // NCCL's hash; by order, the number of the stream, from 1
  uint64_t sequence = 0;      // of the communicator, from 0
  std::string operation;      // "AllReduce"
  std::string reduction;      // "Sum"; "": none, or not known
  uint64_t bytes = 0;         // as the program passed them; 0: not known
  uint32_t ranks = 0;         // of the communicator
  CollectiveMatch match = CollectiveMatch::kByNvtx;
  bool agrees = true;                 // all ranks called the same operation, of the same size
  std::vector<CollectivePart> parts;  // by rank; those without times too

  // Of the parts with times.
  size_t arrived = 0;
  size_t last = 0;  // of `parts`, the one that arrived last
  uint64_t first_arrival_ns = 0;
  uint64_t last_arrival_ns = 0;
  uint64_t second_last_arrival_ns = 0;
  uint64_t end_ns = 0;

  bool is_complete() const { return ranks != 0 && arrived >= ranks; }
  bool is_grouped() const;
  // From the last arrival to the end: the time in which data can move.
  uint64_t transfer_ns() const { return end_ns - last_arrival_ns; }
  // How long the others waited for the last one, added up.
  uint64_t waited_ns() const;
  // What the last one was later than the one before it.
  uint64_t delay_ns() const { return last_arrival_ns - second_last_arrival_ns; }
};

// "AllReduce" of "ncclAllReduce"; "": not a collective.
std::string_view OperationOfCall(std::string_view function);
// Of a kernel such as ncclDevKernel_AllReduce_Sum_f32_RING_LL; "Group" where the name does not say.
std::string_view OperationOfKernel(std::string_view kernel);
bool IsNcclKernel(std::string_view kernel);

// As nccl-tests defines them, in bytes per nanosecond, which are GB/s. Sizes are those of calls: of
// all ranks together for an all-gather, a reduce-scatter and the like. 0: not known.
struct Bandwidth {
  double algorithm = 0;
  double bus = 0;
};
Bandwidth BandwidthOf(std::string_view operation, uint64_t bytes, uint32_t ranks, double ns);

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
