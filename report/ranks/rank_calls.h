// Collectives of NCCL and the like: what one is, with the part that each rank had in it, and the
// calls of them that each rank made, with their kernels, not yet matched (collectives.h).
//
// A rank arrives with the start of its kernel, which then waits for the others. The collective is
// over when its last kernel ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "report/trace/trace.h"

namespace xpu {

enum class CollectiveMatch : uint8_t {
  kByNvtx,   // communicator and order of the calls
  kByOrder,  // order of the kernels on their streams
};

// The part of one rank. Each GPU of a process that drives several is one.
struct CollectivePart {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  uint32_t rank = 0;        // in Job::ranks()
  uint32_t gpu = 0;         // as reports number it
  uint32_t work = kNone;    // its kernel, in Correlation::work; kNone: there is no record of it
  uint32_t range = kNone;   // its call, in NvtxRanges::all()
  uint64_t called_ns = 0;   // when the program called, or launched the kernel
  uint64_t arrived_ns = 0;  // when the kernel started; 0, like end_ns, without one
  uint64_t end_ns = 0;
  uint64_t waited_ns = 0;  // for the last one; a kernel of several collectives waits in one of them
  bool is_grouped = false;  // the kernel is that of other collectives too

  bool has_times() const { return end_ns != 0; }
  using Member = std::pair<uint32_t, uint32_t>;
  Member member() const { return {rank, gpu}; }
};

struct Collective {
  uint64_t communicator = 0;  // NCCL's hash; by order, the number of the stream, from 1
  uint64_t sequence = 0;      // of the communicator, from 0; of point to point, of the two ranks
  std::string operation;      // "AllReduce"; "SendRecv"
  std::string reduction;      // "Sum"; "": none, or not known
  uint64_t bytes = 0;         // as the program passed them; 0: not known
  uint32_t ranks = 0;         // of the communicator
  CollectiveMatch match = CollectiveMatch::kByNvtx;
  bool agrees = true;                 // all ranks called the same operation, of the same size
  std::vector<CollectivePart> parts;  // by rank; those without times too

  // From the parts with times:
  size_t arrived = 0;
  size_t last = 0;     // of `parts`, the one that arrived last
  size_t awaited = 0;  // likewise, the last one that some other one waited for
  uint64_t first_arrival_ns = 0;
  uint64_t last_arrival_ns = 0;
  uint64_t awaited_arrival_ns = 0;
  uint64_t before_awaited_ns = 0;  // the arrival before that
  uint64_t end_ns = 0;

  bool is_complete() const { return ranks > 1 && arrived >= ranks; }
  bool is_grouped() const;
  // From the last arrival to the end: the time in which data can move.
  uint64_t transfer_ns() const { return end_ns - last_arrival_ns; }
  // How long the others waited for that one, added up.
  uint64_t waited_ns() const;
  // How much later than the one before it that one was.
  uint64_t delay_ns() const { return awaited_arrival_ns - before_awaited_ns; }
};

// "AllReduce" of "ncclAllReduce"; "": not a collective.
std::string_view OperationOfCall(std::string_view function);
// "AllReduce" of a kernel such as ncclDevKernel_AllReduce_Sum_f32_RING_LL; "Group" where the name
// does not say.
std::string_view OperationOfKernel(std::string_view kernel);
// Whether the kernel is one of NCCL, or by its name a collective of another library, which a
// comparison of its times on several ranks has to confirm.
bool IsNcclKernel(std::string_view kernel);
bool MayBeCollective(std::string_view kernel);
// Whether no rank can leave before all have entered: each needs data of all the others. They leave
// at about the same time.
bool IsMutual(std::string_view operation);

// Bandwidths as nccl-tests defines them, in bytes per nanosecond, which are GB/s. Sizes are those
// of calls: of all ranks together for an all-gather, a reduce-scatter and the like. 0: not known.
struct Bandwidth {
  double algorithm = 0;
  double bus = 0;
};
Bandwidth BandwidthOf(std::string_view operation, uint64_t bytes, uint32_t ranks, double ns);

// ---- the calls of each rank

// What was called.
struct CallKind {
  std::string operation = {};  // "AllReduce", "Send", "Recv"
  std::string reduction = {};
  uint64_t bytes = 0;
  std::string_view kernel = {};  // by order: its whole name

  friend auto operator<=>(const CallKind&, const CallKind&) = default;
};

struct RankCall {
  CollectivePart part;
  uint32_t kind = 0;                      // in RankCalls::kinds
  uint32_t peer = CollectivePart::kNone;  // of Send and Recv: the other one, in the communicator
  CollectiveMatch match = CollectiveMatch::kByNvtx;
  uint64_t communicator = 0;  // NCCL's hash; by order, the number of the stream in its process
};

struct RankCalls {
  std::vector<CallKind> kinds;
  std::vector<RankCall> calls;                   // of each rank in their order
  std::unordered_map<uint64_t, uint32_t> sizes;  // how many ranks a communicator has, if it says so
  // The rank in a communicator of a process that drives one GPU.
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> places;  // by communicator and rank of the job
  // Those whose creation is recorded, and so all of their calls.
  std::set<std::pair<uint64_t, uint32_t>> created;  // likewise
  uint64_t unmatched_kernels = 0;                   // of NCCL, without a call
  uint64_t hidden = 0;  // calls captured into CUDA graphs whose replays are recorded as a whole
};

RankCalls FindRankCalls(const Trace& trace);

}  // namespace xpu
