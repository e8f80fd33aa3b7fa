// Collectives of NCCL: what one is, with the part that each rank had in it, and the calls of them
// that each rank made, with their kernels, not yet matched (collectives.h).
//
// A rank arrives with the start of its kernel, which then waits for the others. The collective is
// over when its last kernel ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
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

  // From the parts with times:
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
  // How much later than the one before it the last one was.
  uint64_t delay_ns() const { return last_arrival_ns - second_last_arrival_ns; }
};

// "AllReduce" of "ncclAllReduce"; "": not a collective.
std::string_view OperationOfCall(std::string_view function);
// "AllReduce" of a kernel such as ncclDevKernel_AllReduce_Sum_f32_RING_LL; "Group" where the name
// does not say.
std::string_view OperationOfKernel(std::string_view kernel);
bool IsNcclKernel(std::string_view kernel);

// Bandwidths as nccl-tests defines them, in bytes per nanosecond, which are GB/s. Sizes are those
// of calls: of all ranks together for an all-gather, a reduce-scatter and the like. 0: not known.
struct Bandwidth {
  double algorithm = 0;
  double bus = 0;
};
Bandwidth BandwidthOf(std::string_view operation, uint64_t bytes, uint32_t ranks, double ns);

// ---- the calls of each rank

struct RankCall {
  CollectivePart part;
  CollectiveMatch match = CollectiveMatch::kByNvtx;
  uint64_t communicator = 0;  // as in Collective
  std::string operation;
  std::string reduction;
  uint64_t bytes = 0;
};

struct RankCalls {
  std::vector<RankCall> calls;                   // of each rank in the order of its calls
  std::unordered_map<uint64_t, uint32_t> sizes;  // how many ranks a communicator has, if it says so
  uint64_t unmatched_kernels = 0;
  uint64_t point_to_point = 0;
};

RankCalls FindRankCalls(const Trace& trace);

}  // namespace xpu
