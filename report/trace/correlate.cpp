#include "report/trace/correlate.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "report/base/flat_map.h"
#include "report/base/huge_pages.h"
#include "report/trace/correlation_counts.h"
#include "report/trace/launch.h"
#include "report/trace/launches.h"

namespace xpu {
namespace {

// The launches that may be the one that is looked for.
struct Candidates {
  size_t first = 0;
  size_t count = 0;
};

// Launches by their ids. In order of these they are gone through once; here they are looked up, in
// about that order, again and again.
class LaunchIds {
 public:
  // The first `count` of them, by (instance, correlation id).
  LaunchIds(const LaunchList& launches, size_t count);
  Candidates Of(InstanceId instance, uint32_t correlation_id);

 private:
  std::vector<uint32_t, HugePageAllocator<uint32_t>> ids_;
  std::map<InstanceId, Candidates> of_instances_;
  Recent<decltype(of_instances_)> of_instance_{of_instances_};
  size_t near_ = 0;  // where the last ones were
};

// Which call may have started some GPU work, when nothing but the time is to tell
// (`--correlate=time`).
class LaunchesByTime {
 public:
  // `correlation`, which has its launches and processes, must outlive this.
  LaunchesByTime(const Correlation& correlation, const ApiNames& names);

  struct Work {
    InstanceId instance;
    WorkKind kind = WorkKind::kKernel;
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    bool shares_launch = false;  // with others: it is of a graph's node, and of its launch
  };

  // The last call of the work's process that starts such work, began at most `window_ns` before it
  // and was not taken by other work. Ask for the latest work first: calls start one thing each, and
  // what queues for a GPU is run in order. Only a copy or set that ends before its call returns may
  // be one of several of that call. (Taking the nearest call whether it is taken or not gave
  // a recording of a transformer, whose kernels queue, 11 % of its GPU time right.)
  std::optional<uint32_t> Take(const Work& work, uint64_t window_ns);

 private:
  // A process is its pid, where that is known.
  using Key = std::tuple<uint32_t, InstanceId, WorkKind>;
  struct Start {
    uint64_t time_ns;
    uint64_t end_ns;
    uint32_t launch;
    bool starts_many;
    // How far before this one the next is that may not be taken yet; 0: it is this one itself.
    uint32_t to_free = 0;
  };
  using Starts = std::vector<Start>;
  static std::optional<size_t> LastFree(Starts& starts, size_t end);
  Key KeyOf(InstanceId instance, uint32_t pid, WorkKind kind) const;

  const Correlation& correlation_;
  std::map<Key, Starts> starts_;  // by time
};

// The kind of work that a call starts. Those that wait for work are recognized by their names, as
// memory operations are.
std::optional<WorkKind> KindStartedBy(const Launch& launch, std::string_view name) {
  switch (launch.kind) {
    case ApiKind::kKernelLaunch:
      return WorkKind::kKernel;
    case ApiKind::kGraphLaunch:
      return WorkKind::kGraph;
    case ApiKind::kOther:
      break;
  }
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("Memcpy")) return WorkKind::kMemcpy;
  if (has("Memset")) return WorkKind::kMemset;
  if (has("Synchronize") || has("WaitEvent")) return WorkKind::kSynchronization;
  return std::nullopt;
}

LaunchesByTime::LaunchesByTime(const Correlation& correlation, const ApiNames& names)
    : correlation_(correlation) {
  for (uint32_t i = 0; i < correlation.launches.size(); ++i) {
    const Launch& launch = correlation.launches[i];
    // A call that failed or was captured into a graph started nothing.
    if (launch.return_value != 0 || launch.graph_nodes > 0) continue;
    const std::string& name = ApiNameOf(names, launch);
    const auto kind = KindStartedBy(launch, name);
    if (kind)
      starts_[KeyOf(launch.instance, launch.pid, *kind)].push_back(
          {.time_ns = launch.start_ns,
           .end_ns = launch.end_ns,
           .launch = i,
           .starts_many = name.find("Batch") != std::string::npos});
  }
  for (auto& [key, starts] : starts_) {
    std::stable_sort(starts.begin(), starts.end(),
                     [](const Start& a, const Start& b) { return a.time_ns < b.time_ns; });
  }
}

LaunchesByTime::Key LaunchesByTime::KeyOf(InstanceId instance, uint32_t pid, WorkKind kind) const {
  return {pid, pid == 0 ? instance : InstanceId{}, kind};
}

// Before `end`. What is passed on the way is made shorter, as in a union-find.
std::optional<size_t> LaunchesByTime::LastFree(Starts& starts, size_t end) {
  size_t at = end;
  while (at > 0 && starts[at - 1].to_free > 0) {
    at -= std::min<size_t>(starts[at - 1].to_free, at);
  }
  for (size_t i = end; i > at;) {
    Start& passed = starts[i - 1];
    const size_t step = passed.to_free;
    passed.to_free = static_cast<uint32_t>(i - at);
    i -= std::min(step, i);
  }
  if (at == 0) return std::nullopt;
  return at - 1;
}

std::optional<uint32_t> LaunchesByTime::Take(const Work& work, uint64_t window_ns) {
  const auto found =
      starts_.find(KeyOf(work.instance, correlation_.PidOf(work.instance), work.kind));
  if (found == starts_.end()) return std::nullopt;
  Starts& starts = found->second;
  const auto later = std::partition_point(starts.begin(), starts.end(), [&](const Start& start) {
    return start.time_ns <= work.start_ns;
  });
  if (later == starts.begin()) return std::nullopt;
  Start& nearest = *(later - 1);
  const bool is_transfer = work.kind == WorkKind::kMemcpy || work.kind == WorkKind::kMemset;
  if (is_transfer && work.end_ns <= nearest.end_ns) {
    nearest.to_free = std::max(nearest.to_free, 1u);
    return nearest.launch;
  }
  const auto at = LastFree(starts, static_cast<size_t>(later - starts.begin()));
  if (!at || work.start_ns - starts[*at].time_ns > window_ns) return std::nullopt;
  if (!work.shares_launch && !starts[*at].starts_many) starts[*at].to_free = 1;
  return starts[*at].launch;
}

// std::partition_point, quick where it is near `near`: GPU records come in about the order of their
// launches.
template <typename IsBefore>
size_t PointNear(std::span<const uint32_t> ids, size_t near, IsBefore is_before) {
  size_t low = near;
  for (size_t step = 1; low > 0 && !is_before(ids[low - 1]); step *= 2) {
    low -= std::min(low, step);
  }
  size_t high = near;
  for (size_t step = 1; high < ids.size() && is_before(ids[high]); step *= 2) {
    high += std::min(ids.size() - high, step);
  }
  const auto between = ids.subspan(low, high - low);
  const auto point = std::partition_point(between.begin(), between.end(), is_before);
  return low + static_cast<size_t>(point - between.begin());
}

LaunchIds::LaunchIds(const LaunchList& launches, size_t count) : ids_(count) {
  for (size_t i = 0; i < count; ++i) {
    ids_[i] = launches.Get<&Launch::correlation_id>(i);
    Candidates& of_instance = of_instance_[launches.Get<&Launch::instance>(i)];
    if (of_instance.count++ == 0) of_instance.first = i;
  }
}

Candidates LaunchIds::Of(InstanceId instance, uint32_t correlation_id) {
  const Candidates& all = of_instance_[instance];
  const auto ids = std::span(ids_).subspan(all.first, all.count);
  near_ =
      PointNear(ids, std::min(near_, ids.size()), [&](uint32_t id) { return id < correlation_id; });
  const size_t end = PointNear(ids, near_, [&](uint32_t id) { return id <= correlation_id; });
  return {all.first + near_, end - near_};
}

class CorrelationBuilder {
 public:
  CorrelationBuilder(const Model& model, const Tracks& tracks, const Clocks& clocks,
                     const ApiNames& names, const GpuDevices& gpus, const GraphNodes& graph_nodes,
                     const CorrelateOptions& options, LaunchTable table)
      : model_(model),
        tracks_(tracks),
        clocks_(clocks),
        names_(names),
        gpus_(gpus),
        graph_nodes_(graph_nodes),
        options_(options),
        ids_(table.launches, table.with_id),
        stacks_duplicate_(table.stacks_duplicate) {
    result_.launches = std::move(table.launches);
    result_.processes = std::move(table.processes);
  }

  Correlation Build() {
    CollectWork();
    if (options_.by == CorrelateBy::kTime) MatchByTime();
    for (const GpuWork& work : result_.work.templates()) {
      result_.processes[work.instance].has_work = true;
    }
    result_.counts = CountCorrelation(model_, graph_nodes_, result_, {});
    result_.counts.stacks_duplicate = stacks_duplicate_;
    return std::move(result_);
  }

 private:
  void CollectWork();
  template <typename Record>
  void AddWork(WorkKind kind, const Record& record, uint32_t index);
  void Match(GpuWork& work, uint64_t start_clock_ns, uint64_t end_clock_ns);
  void MatchByTime();
  void FindOwner(GpuWork& work) const;
  void FindOrigin(GpuWork& work, uint64_t node_id);
  uint32_t LastBefore(const Candidates& candidates, uint64_t time_ns) const;

  const Model& model_;
  const Tracks& tracks_;
  const Clocks& clocks_;
  const ApiNames& names_;
  const GpuDevices& gpus_;
  const GraphNodes& graph_nodes_;
  const CorrelateOptions options_;
  LaunchIds ids_;
  const uint64_t stacks_duplicate_;
  Correlation result_;
  std::map<std::pair<InstanceId, uint32_t>, uint32_t> devices_;  // by context
  Recent<decltype(devices_)> device_of_{devices_};
};

void CorrelationBuilder::CollectWork() {
  const LoadedEvents& events = model_.events;
  const auto add_all = [&](WorkKind kind, const auto& records) {
    for (uint32_t i = 0; i < records.size(); ++i) AddWork(kind, records[i], i);
  };
  add_all(WorkKind::kKernel, events.kernels);
  add_all(WorkKind::kMemcpy, events.memcpys);
  add_all(WorkKind::kMemset, events.memsets);
  add_all(WorkKind::kGraph, events.graph_launches);
  add_all(WorkKind::kSynchronization, events.synchronizations);
}

template <typename Record>
void CorrelationBuilder::AddWork(WorkKind kind, const Record& record, uint32_t index) {
  GpuWork work;
  work.instance = record.instance;
  work.kind = kind;
  work.index = index;
  work.correlation_id = record.correlation_id;
  work.stream_id = record.stream_id;
  // Synchronizations name only their context, which has had other work before.
  uint32_t& device_id = device_of_[{record.instance, record.context_id}];
  if constexpr (requires { record.device_id; }) device_id = record.device_id;
  work.device_id = device_id;
  work.gpu = gpus_.Of(work.instance, device_id).number;
  // CUPTI writes 0 for "no time", and end before start when its device buffers overflowed.
  work.timed = record.start_ns != 0 && record.end_ns >= record.start_ns;
  Match(work, record.start_ns, record.end_ns);
  FindOwner(work);
  if constexpr (requires { record.graph_node_id; }) {
    if (record.graph_node_id != 0) FindOrigin(work, record.graph_node_id);
  }
  result_.work.push_back(work);
}

// The last launch that is not later than `time_ns`, the first when all are. There is one.
uint32_t CorrelationBuilder::LastBefore(const Candidates& candidates, uint64_t time_ns) const {
  size_t first_later = candidates.first;
  for (size_t count = candidates.count; count > 0;) {
    const size_t half = count / 2;
    const uint64_t start_ns = result_.launches.Get<&Launch::start_ns>(first_later + half);
    if (start_ns <= time_ns || start_ns - time_ns <= kToleranceNs) {
      first_later += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return static_cast<uint32_t>(std::max(candidates.first + 1, first_later) - 1);
}

void CorrelationBuilder::Match(GpuWork& work, uint64_t start_clock_ns, uint64_t end_clock_ns) {
  const Candidates candidates = ids_.Of(work.instance, work.correlation_id);
  const ClockFit& clock = clocks_.Of(work.instance);
  if (work.timed) {
    const uint64_t not_before_ns =
        candidates.count == 0 ? 0 : result_.launches.Get<&Launch::start_ns>(candidates.first);
    work.start_ns = clock.ToMonotonic(start_clock_ns, not_before_ns);
    work.end_ns = std::max(work.start_ns, clock.ToMonotonic(end_clock_ns, work.start_ns));
    work.duration_ns = end_clock_ns - start_clock_ns;
  }
  if (candidates.count == 0 || options_.by == CorrelateBy::kTime) return;
  const bool is_alone = candidates.count == 1;
  if (!is_alone && !work.timed) return;  // without a time there is no telling
  work.launch =
      is_alone ? static_cast<uint32_t>(candidates.first) : LastBefore(candidates, work.start_ns);
  work.match = is_alone ? MatchKind::kById : MatchKind::kByIdAndTime;
  result_.launches.CountWork(work.launch);
}

void CorrelationBuilder::MatchByTime() {
  LaunchesByTime launches(result_, names_);
  std::vector<GpuWork> all = Unpacked(result_.work);
  std::vector<GpuWork*> latest_first;
  for (GpuWork& work : all) {
    if (work.timed) latest_first.push_back(&work);
  }
  std::stable_sort(latest_first.begin(), latest_first.end(),
                   [](const GpuWork* a, const GpuWork* b) { return a->start_ns > b->start_ns; });
  for (GpuWork* work : latest_first) {
    const bool is_node = work->origin != NodeOrigin::kNoNode;
    const auto launch = launches.Take({work->instance, is_node ? WorkKind::kGraph : work->kind,
                                       work->start_ns, work->end_ns, is_node},
                                      options_.window_ns);
    if (!launch) continue;
    work->launch = *launch;
    work->match = MatchKind::kByTime;
    result_.launches.CountWork(*launch);
  }
  result_.work = GpuWorkList();
  for (GpuWork& work : all) {
    FindOwner(work);
    result_.work.push_back(work);
  }
}

void CorrelationBuilder::FindOwner(GpuWork& work) const {
  Owner owner;
  if (work.launch != GpuWork::kNoLaunch) {
    owner = result_.launches[work.launch].owner();
  } else {
    const uint32_t pid = result_.PidOf(work.instance);
    owner = tracks_.OwnerAt(pid, pid, work.start_ns);
  }
  work.process = owner.process;
  work.pid = owner.pid;
  work.tid = owner.tid;
  work.track = owner.track;
  work.called_ns = owner.time_ns;
}

// Updates are calls too: what the node was when its graph was launched counts, however long the
// launch had to wait for the GPU.
void CorrelationBuilder::FindOrigin(GpuWork& work, uint64_t node_id) {
  const bool has_time = work.timed || work.launch != GpuWork::kNoLaunch;
  const uint64_t time_ns = has_time ? work.called_ns : std::numeric_limits<uint64_t>::max();
  const GraphNodes::Origin origin = graph_nodes_.OriginOf(work.instance, node_id, time_ns);
  work.origin = origin.graph_is_known ? NodeOrigin::kUnknown : NodeOrigin::kBeforeRecording;
  if (origin.created == nullptr || origin.created->correlation_id == 0) return;
  const Candidates candidates = ids_.Of(work.instance, origin.created->correlation_id);
  if (candidates.count == 0) return;
  work.creation = LastBefore(candidates, origin.created->time_ns);
  work.origin = NodeOrigin::kKnown;
}

}  // namespace

Correlation Correlate(const Model& model, const Tracks& tracks, const Clocks& clocks,
                      const ApiNames& names, const GpuDevices& gpus, const GraphNodes& graph_nodes,
                      const CorrelateOptions& options) {
  return CorrelationBuilder(model, tracks, clocks, names, gpus, graph_nodes, options,
                            FindLaunches(model, tracks, names, options.by))
      .Build();
}

}  // namespace xpu
