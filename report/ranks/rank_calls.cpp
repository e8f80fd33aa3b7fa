#include "report/ranks/rank_calls.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "format/base/saturated.h"

namespace xpu {
namespace {

constexpr std::array<std::string_view, 8> kOperations = {"AllReduce", "AllGather", "ReduceScatter",
                                                         "Broadcast", "Reduce",    "AlltoAll",
                                                         "Gather",    "Scatter"};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// The payload of a range, by the names of its fields: versions of NCCL differ in which there are,
// and in their order.
struct NcclFields {
  std::optional<uint64_t> communicator;
  std::optional<uint64_t> bytes;
  std::optional<uint64_t> ranks;
  std::string reduction;
};

NcclFields FieldsOf(const std::vector<PayloadField>& fields) {
  NcclFields found;
  for (const PayloadField& field : fields) {
    const std::string name = Lower(field.name);
    const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
    if (has("reduction")) found.reduction = field.text;
    if (!field.is_number) continue;
    if (has("communicator") && !has("parent")) found.communicator = field.number;
    if (has("bytes")) found.bytes = field.number;
    if (has("ranks")) found.ranks = field.number;
  }
  return found;
}

class CallFinder {
 public:
  explicit CallFinder(const Trace& trace) : trace_(trace) {}

  RankCalls Find() {
    FindCalls();
    FindKernels();
    FindOrder();
    return std::move(found_);
  }

 private:
  static constexpr uint32_t kNone = CollectivePart::kNone;
  using Thread = std::pair<InstanceId, uint32_t>;  // as the program sees it

  // The calls of a thread in order of time; from `next` on, their kernels may follow.
  struct Pending {
    std::vector<uint32_t> calls;
    size_t next = 0;
  };

  // One call for each range of a collective, in order of time.
  void FindCalls() {
    const std::vector<NvtxRange>& ranges = trace_.nvtx.all();
    call_of_range_.assign(ranges.size(), kNone);
    for (uint32_t i = 0; i < ranges.size(); ++i) {
      const NvtxRange& range = ranges[i];
      if (range.style == NvtxStyle::kMark) continue;
      const std::string_view function = trace_.model.Text(range.event->text);
      if (!function.starts_with("nccl") && !function.starts_with("pnccl") &&
          !function.starts_with("rccl")) {
        continue;
      }
      const NcclFields fields = FieldsOf(trace_.nvtx.FieldsOf(range));
      if (!fields.communicator) continue;
      const uint32_t rank = trace_.job.Of(range.event->instance);
      if (rank == Job::kNone) continue;
      if (fields.ranks && *fields.ranks <= UINT32_MAX) {
        found_.sizes[*fields.communicator] = static_cast<uint32_t>(*fields.ranks);
      }
      if (function.ends_with("Send") || function.ends_with("Recv")) ++found_.point_to_point;
      const std::string_view operation = OperationOfCall(function);
      if (operation.empty() || !fields.bytes) continue;
      call_of_range_[i] = static_cast<uint32_t>(found_.calls.size());
      pending_[{range.event->instance, range.event->tid}].calls.push_back(call_of_range_[i]);
      by_nvtx_.insert(range.event->instance);
      RankCall& call = found_.calls.emplace_back();
      call.part.rank = rank;
      call.part.range = i;
      call.part.called_ns = range.start_ns;
      call.communicator = *fields.communicator;
      call.operation = operation;
      call.reduction = fields.reduction;
      call.bytes = *fields.bytes;
    }
  }

  // Timed, in order of their launches.
  std::vector<uint32_t> NcclKernels() const {
    std::map<StringId, bool> known;
    std::vector<uint32_t> kernels;
    const GpuWorkList& all = trace_.correlation.work;
    for (uint32_t i = 0; i < all.size(); ++i) {
      if (all[i].kind != WorkKind::kKernel || !all[i].timed) continue;
      const StringId name = trace_.model.events.kernels.Get<&Kernel::name>(all[i].index);
      const auto [place, is_new] = known.try_emplace(name);
      if (is_new) place->second = IsNcclKernel(trace_.model.Text(name));
      if (place->second) kernels.push_back(i);
    }
    std::stable_sort(kernels.begin(), kernels.end(),
                     [&](uint32_t a, uint32_t b) { return all[a].called_ns < all[b].called_ns; });
    return kernels;
  }

  void FindKernels() {
    for (const uint32_t i : NcclKernels()) {
      const GpuWork& work = trace_.correlation.work[i];
      if (!by_nvtx_.contains(work.instance)) {
        by_order_.push_back(i);
      } else if (!GiveToCalls(i)) {
        ++found_.unmatched_kernels;
      }
    }
  }

  // To the call around its launch or, where there is none, to those that the thread has grouped.
  bool GiveToCalls(uint32_t i) {
    const GpuWork& work = trace_.correlation.work[i];
    if (work.launch == GpuWork::kNoLaunch) return false;
    const Launch& launch = trace_.correlation.launches[work.launch];
    for (const uint32_t range : trace_.nvtx.RangesOf(trace_.nvtx.At(launch))) {
      if (call_of_range_[range] == kNone) continue;
      RankCall& call = found_.calls[call_of_range_[range]];
      PendingUntil(call.part.called_ns, launch);
      Give(i, call, false);
      return true;
    }
    const std::vector<uint32_t> group = TakeGroup(launch);
    for (const uint32_t call : group) Give(i, found_.calls[call], group.size() > 1);
    return !group.empty();
  }

  // Calls up to `time_ns` that have no kernel by now get none: its record is lost.
  Pending& PendingUntil(uint64_t time_ns, const Launch& launch) {
    const uint32_t tid = launch.program_tid != 0 ? launch.program_tid : launch.tid;
    Pending& pending = pending_[{launch.instance, tid}];
    while (pending.next < pending.calls.size() &&
           found_.calls[pending.calls[pending.next]].part.called_ns <= time_ns) {
      ++pending.next;
    }
    return pending;
  }

  // The calls of one communicator that the thread made before, and that have no kernel yet. Grouped
  // calls of several communicators have a kernel each.
  std::vector<uint32_t> TakeGroup(const Launch& launch) {
    Pending& pending = PendingUntil(0, launch);
    const auto begin = pending.calls.begin() + static_cast<ptrdiff_t>(pending.next);
    const auto end = std::find_if(begin, pending.calls.end(), [&](uint32_t call) {
      return found_.calls[call].part.called_ns > launch.start_ns;
    });
    if (begin == end) return {};
    const uint64_t communicator = found_.calls[*begin].communicator;
    const auto rest = std::stable_partition(
        begin, end, [&](uint32_t call) { return found_.calls[call].communicator == communicator; });
    std::vector<uint32_t> group(begin, rest);
    pending.next += group.size();
    return group;
  }

  void Give(uint32_t i, RankCall& call, bool is_grouped) {
    const GpuWork& work = trace_.correlation.work[i];
    CollectivePart& part = call.part;
    if (part.work == kNone || work.start_ns < part.arrived_ns) part.arrived_ns = work.start_ns;
    if (part.work == kNone) part.work = i;
    part.end_ns = std::max(part.end_ns, work.end_ns);
    part.is_grouped = part.is_grouped || is_grouped;
  }

  // Without NVTX: the streams of a rank are numbered by their first kernels of NCCL, and ranks use
  // theirs in the same order.
  void FindOrder() {
    std::map<std::pair<InstanceId, uint32_t>, uint64_t> streams;  // number
    std::map<InstanceId, uint64_t> stream_counts;
    for (const uint32_t i : by_order_) {
      const GpuWork& work = trace_.correlation.work[i];
      const uint32_t rank = trace_.job.Of(work.instance);
      const StringId name = trace_.model.events.kernels.Get<&Kernel::name>(work.index);
      const std::string_view operation = OperationOfKernel(trace_.model.Text(name));
      if (rank == Job::kNone || operation == "SendRecv") {
        ++found_.unmatched_kernels;
        continue;
      }
      const auto [stream, is_new] = streams.try_emplace({work.instance, work.stream_id});
      if (is_new) stream->second = ++stream_counts[work.instance];
      RankCall& call = found_.calls.emplace_back();
      call.match = CollectiveMatch::kByOrder;
      call.communicator = stream->second;
      call.operation = operation;
      call.part.rank = rank;
      call.part.called_ns = work.called_ns;
      Give(i, call, operation == "Group");
    }
  }

  const Trace& trace_;
  RankCalls found_;
  std::vector<uint32_t> call_of_range_;  // in found_.calls
  std::map<Thread, Pending> pending_;
  std::set<InstanceId> by_nvtx_;    // processes whose calls are known
  std::vector<uint32_t> by_order_;  // kernels of the others
};

}  // namespace

bool Collective::is_grouped() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const CollectivePart& part) { return part.is_grouped; });
}

uint64_t Collective::waited_ns() const {
  uint64_t waited = 0;
  for (const CollectivePart& part : parts) {
    if (part.has_times()) waited = AddSaturated(waited, last_arrival_ns - part.arrived_ns);
  }
  return waited;
}

std::string_view OperationOfCall(std::string_view function) {
  for (const std::string_view prefix : {"nccl", "pnccl", "rccl"}) {
    if (!function.starts_with(prefix)) continue;
    const std::string_view rest = function.substr(prefix.size());
    for (const std::string_view operation : kOperations) {
      if (rest == operation) return operation;
    }
    if (rest == "Bcast") return "Broadcast";
    if (rest == "AllToAll") return "AlltoAll";
  }
  return {};
}

bool IsNcclKernel(std::string_view kernel) {
  const size_t at = kernel.find("nccl");
  return at != std::string_view::npos && kernel.find("Kernel", at) != std::string_view::npos;
}

std::string_view OperationOfKernel(std::string_view kernel) {
  // Reduce is the beginning of ReduceScatter, and the end of AllReduce.
  for (const std::string_view operation :
       {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AlltoAll", "SendRecv", "Reduce"}) {
    if (kernel.find(operation) != std::string_view::npos) return operation;
  }
  return "Group";
}

Bandwidth BandwidthOf(std::string_view operation, uint64_t bytes, uint32_t ranks, double ns) {
  if (bytes == 0 || ranks == 0 || ns <= 0) return {};
  const auto n = static_cast<double>(ranks);
  auto size = static_cast<double>(bytes);
  double factor = 1;
  if (operation == "AllReduce") {
    factor = 2 * (n - 1) / n;
  } else if (operation != "Broadcast" && operation != "Reduce") {
    size *= n;  // what the program passes is the share of one rank
    factor = (n - 1) / n;
  }
  return {.algorithm = size / ns, .bus = size / ns * factor};
}

RankCalls FindRankCalls(const Trace& trace) { return CallFinder(trace).Find(); }

}  // namespace xpu
