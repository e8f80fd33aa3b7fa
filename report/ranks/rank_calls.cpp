#include "report/ranks/rank_calls.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "format/base/saturated.h"

namespace xpu {
namespace {

constexpr std::array<std::string_view, 10> kOperations = {
    "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce",
    "AlltoAll",  "Gather",    "Scatter",       "Send",      "Recv"};

// How libraries other than NCCL write the names of their kernels.
struct SpelledOperation {
  std::string_view name;
  std::string_view spelling;
};
constexpr SpelledOperation kSpellings[] = {{"AllReduce", "all_reduce"},
                                           {"AllReduce", "allreduce"},
                                           {"AllReduce", "cross_device_reduce"},
                                           {"AllGather", "all_gather"},
                                           {"AllGather", "allgather"},
                                           {"ReduceScatter", "reduce_scatter"},
                                           {"ReduceScatter", "reducescatter"},
                                           {"AlltoAll", "all_to_all"},
                                           {"AlltoAll", "alltoall"}};

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
  std::optional<uint64_t> rank;
  std::optional<uint64_t> peer;
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
    if (has("ranks") || has("no. of devices")) found.ranks = field.number;
    if (name == "rank") found.rank = field.number;
    if (has("peer")) found.peer = field.number;
  }
  return found;
}

class CallFinder {
 public:
  explicit CallFinder(const Trace& trace)
      : trace_(trace), launches_(trace.correlation.launches), work_(trace.correlation.work) {}

  RankCalls Find() {
    FindCalls();
    FindKernels();
    for (auto& [thread, sites] : sites_) GiveCalls(thread, sites);
    for (const uint32_t i : by_nvtx_kernels_) Give(i);
    FindCaptured();
    DropTemplates();
    FindOrder();
    found_.kinds.resize(kinds_.size());
    for (auto& [kind, number] : kinds_) found_.kinds[number] = kind;
    return std::move(found_);
  }

 private:
  static constexpr uint32_t kNone = CollectivePart::kNone;
  // Kernels of a group after the first one of its last communicator, and calls of a kernel in a
  // CUDA graph: captures with more are hostile.
  static constexpr size_t kMostFurther = 8;
  static constexpr size_t kMostCaptured = 64;
  using Thread = std::pair<InstanceId, uint32_t>;  // as the program sees it

  // A call that launched kernels of NCCL, or put them into a CUDA graph.
  struct Site {
    uint32_t launch = 0;
    uint32_t gpu = 0;
    bool makes_nodes = false;
  };
  // The calls that its kernels are of.
  struct Served {
    std::vector<uint32_t> calls = {};
    bool makes_nodes = false;
  };

  uint32_t NumberOf(CallKind kind) {
    const auto next = static_cast<uint32_t>(kinds_.size());
    return kinds_.try_emplace(std::move(kind), next).first->second;
  }

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
      if (fields.rank && *fields.rank <= UINT32_MAX) {
        found_.places[{*fields.communicator, rank}] = static_cast<uint32_t>(*fields.rank);
      }
      if (function.find("CommInit") != std::string_view::npos ||
          function.find("CommSplit") != std::string_view::npos) {
        found_.created.insert({*fields.communicator, rank});
      }
      const std::string_view operation = OperationOfCall(function);
      if (operation.empty() || !fields.bytes) continue;
      call_of_range_[i] = static_cast<uint32_t>(found_.calls.size());
      calls_[{range.event->instance, range.event->tid}].push_back(call_of_range_[i]);
      by_nvtx_.insert(range.event->instance);
      RankCall& call = found_.calls.emplace_back();
      call.part.rank = rank;
      call.part.range = i;
      call.part.called_ns = range.start_ns;
      call.communicator = *fields.communicator;
      call.kind = NumberOf({std::string(operation), fields.reduction, *fields.bytes});
      if (fields.peer) call.peer = static_cast<uint32_t>(*fields.peer);
    }
  }

  // Those with times, by how their calls are found.
  void FindKernels() {
    struct Name {
      bool is_nccl = false;
      bool is_collective = false;
    };
    std::map<StringId, Name> names;
    std::set<uint32_t> seen;  // launches that are sites
    for (uint32_t i = 0; i < work_.size(); ++i) {
      if (work_.Get<&GpuWork::kind>(i) != WorkKind::kKernel) continue;
      const StringId id =
          trace_.model.events.kernels.Get<&Kernel::name>(work_.Get<&GpuWork::index>(i));
      const auto [known, is_new] = names.try_emplace(id);
      if (is_new) {
        const std::string_view name = trace_.model.Text(id);
        known->second = {IsNcclKernel(name), IsNcclKernel(name) || MayBeCollective(name)};
      }
      if (!known->second.is_collective) continue;
      const GpuWork work = work_[i];
      if (!work.timed) continue;
      gpus_.try_emplace(trace_.job.Of(work.instance), work.gpu);
      if (!known->second.is_nccl || !by_nvtx_.contains(work.instance)) {
        by_order_.push_back(i);
        continue;
      }
      by_nvtx_kernels_.push_back(i);
      const uint32_t place = SiteOf(work);
      if (place == GpuWork::kNoLaunch || !seen.insert(place).second) continue;
      const Launch launch = launches_[place];
      sites_[ThreadOf(launch)].push_back({place, work.gpu, work.creation != GpuWork::kNoLaunch});
    }
  }

  static uint32_t SiteOf(const GpuWork& work) {
    return work.origin == NodeOrigin::kNoNode ? work.launch : work.creation;
  }
  static Thread ThreadOf(const Launch& launch) {
    return {launch.instance, launch.program_tid != 0 ? launch.program_tid : launch.tid};
  }

  // Finds the calls of each site of a thread: the one around it or, where there is none, those that
  // the thread has grouped before.
  void GiveCalls(const Thread& thread, std::vector<Site>& sites) {
    std::sort(sites.begin(), sites.end(), [this](const Site& a, const Site& b) {
      return std::tuple(launches_.Get<&Launch::start_ns>(a.launch), a.launch) <
             std::tuple(launches_.Get<&Launch::start_ns>(b.launch), b.launch);
    });
    const std::vector<uint32_t>& calls = calls_[thread];
    size_t next = 0;  // of `calls`: those before have their kernels, or their records are lost
    for (size_t i = 0; i < sites.size();) {
      const Launch launch = launches_[sites[i].launch];
      if (const uint32_t around = CallAround(launch); around != kNone) {
        served_[sites[i].launch] = {{around}, sites[i].makes_nodes};
        while (next < calls.size() && CalledNs(calls[next]) <= CalledNs(around)) ++next;
        ++i;
        continue;
      }
      size_t end = next;
      while (end < calls.size() && CalledNs(calls[end]) <= launch.start_ns) ++end;
      const uint64_t until_ns = end < calls.size() ? CalledNs(calls[end]) : ~uint64_t{0};
      const size_t first = i;
      while (i < sites.size() && (i == first || IsOfGroup(sites[i], until_ns))) ++i;
      GiveGroup({calls.begin() + static_cast<ptrdiff_t>(next),
                 calls.begin() + static_cast<ptrdiff_t>(end)},
                {sites.begin() + static_cast<ptrdiff_t>(first),
                 sites.begin() + static_cast<ptrdiff_t>(i)});
      next = end;
    }
  }

  uint64_t CalledNs(uint32_t call) const { return found_.calls[call].part.called_ns; }

  uint32_t CallAround(const Launch& launch) const {
    for (const uint32_t range : trace_.nvtx.RangesOf(trace_.nvtx.At(launch))) {
      if (call_of_range_[range] != kNone) return call_of_range_[range];
    }
    return kNone;
  }

  bool IsOfGroup(const Site& site, uint64_t until_ns) const {
    const Launch launch = launches_[site.launch];
    return launch.start_ns < until_ns && CallAround(launch) == kNone;
  }

  // Calls of several communicators have a kernel each, and large groups of one have several. A
  // process that drives several GPUs calls for one after the other, and each has kernels.
  void GiveGroup(const std::vector<uint32_t>& calls, const std::vector<Site>& sites) {
    std::vector<std::vector<uint32_t>> communicators;  // in the order of their first calls
    std::map<uint64_t, size_t> place_of;
    for (const uint32_t call : calls) {
      const auto [place, is_new] =
          place_of.try_emplace(found_.calls[call].communicator, communicators.size());
      if (is_new) communicators.emplace_back();
      communicators[place->second].push_back(call);
    }
    if (communicators.empty()) return;
    struct Gpu {
      size_t number;
      size_t sites = 0;  // that have calls
    };
    std::map<uint32_t, Gpu> gpus;
    for (const Site& site : sites) gpus.try_emplace(site.gpu, Gpu{gpus.size()});
    for (const Site& site : sites) {
      Gpu& gpu = gpus.find(site.gpu)->second;
      const size_t at = gpu.sites++;
      if (at >= communicators.size() + kMostFurther) continue;
      Served& served = served_[site.launch];
      served.makes_nodes = site.makes_nodes;
      const std::vector<uint32_t>& all = communicators[std::min(at, communicators.size() - 1)];
      for (size_t i = gpu.number; i < all.size(); i += gpus.size()) served.calls.push_back(all[i]);
      // Each replay of a graph has as many; no program groups so many.
      if (site.makes_nodes && served.calls.size() > kMostCaptured) {
        served.calls.resize(kMostCaptured);
      }
    }
  }

  void Give(uint32_t i) {
    const GpuWork work = work_[i];
    const auto served = served_.find(SiteOf(work));
    if (served == served_.end() || served->second.calls.empty()) {
      ++found_.unmatched_kernels;
      return;
    }
    const std::vector<uint32_t>& calls = served->second.calls;
    for (const uint32_t call : calls) {
      uint32_t given = call;
      if (served->second.makes_nodes) {
        // Each replay is a call like the one that made the node.
        templates_.insert(call);
        given = static_cast<uint32_t>(found_.calls.size());
        found_.calls.push_back(RankCall(found_.calls[call]));
        found_.calls[given].part.called_ns = work.called_ns;
      }
      Put(i, found_.calls[given].part, calls.size() > 1);
    }
  }

  void Put(uint32_t i, CollectivePart& part, bool is_grouped) {
    const GpuWork work = work_[i];
    if (part.work == kNone || work.start_ns < part.arrived_ns) part.arrived_ns = work.start_ns;
    if (part.work == kNone) part.work = i;
    part.gpu = work.gpu;
    part.end_ns = std::max(part.end_ns, work.end_ns);
    part.is_grouped = part.is_grouped || is_grouped;
  }

  // Also where replays are recorded as a whole.
  void FindCaptured() {
    for (uint32_t i = 0; !by_nvtx_.empty() && i < launches_.size(); ++i) {
      if (launches_.Get<&Launch::graph_nodes>(i) == 0) continue;
      const uint32_t call = CallAround(launches_[i]);
      if (call != kNone && templates_.insert(call).second) ++found_.hidden;
    }
  }

  // Calls that a graph captured ran nothing.
  void DropTemplates() {
    uint32_t at = 0;
    std::erase_if(found_.calls, [&](const RankCall&) { return templates_.contains(at++); });
    for (RankCall& call : found_.calls) {
      if (call.part.has_times()) continue;
      const auto gpu = gpus_.find(call.part.rank);
      if (gpu != gpus_.end()) call.part.gpu = gpu->second;
    }
    // Kernels of a communicator run one after the other.
    std::stable_sort(found_.calls.begin(), found_.calls.end(),
                     [](const RankCall& a, const RankCall& b) {
                       return std::tuple(a.part.called_ns, a.part.arrived_ns) <
                              std::tuple(b.part.called_ns, b.part.arrived_ns);
                     });
  }

  // Without NVTX: the kernels of each stream, in their order.
  void FindOrder() {
    std::stable_sort(by_order_.begin(), by_order_.end(), [this](uint32_t a, uint32_t b) {
      return work_.Get<&GpuWork::start_ns>(a) < work_.Get<&GpuWork::start_ns>(b);
    });
    std::map<std::pair<CollectivePart::Member, uint32_t>, uint64_t> streams;  // number
    for (const uint32_t i : by_order_) {
      const GpuWork work = work_[i];
      const uint32_t rank = trace_.job.Of(work.instance);
      const StringId id = trace_.model.events.kernels.Get<&Kernel::name>(work.index);
      const std::string_view name = trace_.model.Text(id);
      const std::string_view operation = OperationOfKernel(name);
      if (rank == Job::kNone || operation == "SendRecv") {
        ++found_.unmatched_kernels;
        continue;
      }
      const uint64_t next = streams.size() + 1;
      RankCall& call = found_.calls.emplace_back();
      call.match = CollectiveMatch::kByOrder;
      call.communicator =
          streams.try_emplace({{rank, work.gpu}, work.stream_id}, next).first->second;
      call.kind = NumberOf({std::string(operation), "", 0, name});
      call.part.rank = rank;
      call.part.called_ns = work.called_ns;
      Put(i, call.part, operation == "Group");
    }
  }

  const Trace& trace_;
  const LaunchList& launches_;
  const GpuWorkList& work_;
  RankCalls found_;
  std::map<CallKind, uint32_t> kinds_;
  std::vector<uint32_t> call_of_range_;            // in found_.calls
  std::map<Thread, std::vector<uint32_t>> calls_;  // likewise, in order of time
  std::map<Thread, std::vector<Site>> sites_;
  std::unordered_map<uint32_t, Served> served_;  // by launch
  std::set<uint32_t> templates_;                 // in found_.calls
  std::unordered_map<uint32_t, uint32_t> gpus_;  // of ranks: the first one with a kernel
  std::set<InstanceId> by_nvtx_;                 // processes whose calls are known
  std::vector<uint32_t> by_nvtx_kernels_;        // kernels of NCCL of these
  std::vector<uint32_t> by_order_;               // kernels of the others
};

}  // namespace

bool Collective::is_grouped() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const CollectivePart& part) { return part.is_grouped; });
}

uint64_t Collective::waited_ns() const {
  uint64_t waited = 0;
  for (const CollectivePart& part : parts) waited = AddSaturated(waited, part.waited_ns);
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

bool MayBeCollective(std::string_view kernel) {
  const std::string lower = Lower(kernel);
  return std::any_of(
      std::begin(kSpellings), std::end(kSpellings),
      [&](const SpelledOperation& one) { return lower.find(one.spelling) != std::string::npos; });
}

std::string_view OperationOfKernel(std::string_view kernel) {
  // Reduce is the beginning of ReduceScatter, and the end of AllReduce.
  for (const std::string_view operation :
       {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AlltoAll", "SendRecv", "Reduce"}) {
    if (kernel.find(operation) != std::string_view::npos) return operation;
  }
  const std::string lower = Lower(kernel);
  for (const SpelledOperation& one : kSpellings) {
    if (lower.find(one.spelling) != std::string::npos) return one.name;
  }
  return "Group";
}

bool IsMutual(std::string_view operation) {
  return operation == "AllReduce" || operation == "AllGather" || operation == "ReduceScatter" ||
         operation == "AlltoAll";
}

Bandwidth BandwidthOf(std::string_view operation, uint64_t bytes, uint32_t ranks, double ns) {
  if (bytes == 0 || ranks == 0 || ns <= 0) return {};
  const auto n = static_cast<double>(ranks);
  auto size = static_cast<double>(bytes);
  double factor = 1;
  if (operation == "AllReduce") {
    factor = 2 * (n - 1) / n;
  } else if (operation != "Broadcast" && operation != "Reduce" && operation != "SendRecv") {
    size *= n;  // what the program passes is the share of one rank
    factor = (n - 1) / n;
  }
  return {.algorithm = size / ns, .bus = size / ns * factor};
}

RankCalls FindRankCalls(const Trace& trace) { return CallFinder(trace).Find(); }

}  // namespace xpu
