#include "report/query/unfinished_work.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "format/cuda_faults.h"
#include "format/losses.h"
#include "report/analysis/call_paths.h"
#include "report/model/recorded_time.h"

namespace xpu {
namespace {

// CUpti_ActivitySynchronizationType
constexpr uint32_t kStreamSynchronize = 3;
constexpr uint32_t kContextSynchronize = 4;
// A stream takes about a thousand operations ahead of the GPU, then launches wait.
constexpr size_t kMostAhead = 4096;
// The records of a program that was killed may lack as much work that had ended.
constexpr uint64_t kLongPendingNs = 120'000'000;

class Finder {
 public:
  explicit Finder(const Analysis& analysis)
      : analysis_(analysis),
        events_(analysis.model.events),
        launches_(analysis.correlation.launches),
        work_(analysis.correlation.work) {}

  std::vector<UnfinishedProcess> Find();

 private:
  using StreamKey = std::tuple<InstanceId, uint32_t, uint32_t>;  // context, stream
  struct Stream {
    uint64_t last_timed_ns = 0;          // the launch of its latest operation that has times
    uint64_t ended_ns = 0;               // the latest end of these
    std::vector<uint32_t> untimed = {};  // in Correlation::work
    // When its kernels ran, on the clock of the GPU.
    std::vector<std::pair<uint64_t, uint64_t>> spans = {};
  };

  void FindFaults();
  void FindWaits();
  void FindStreams();
  void FindSpans();
  void AddStreams();
  std::set<InstanceId> LosingInstances() const;
  void AddUndelivered();
  void FindOpenCalls();
  void FindEnds();
  void CountCandidates(UnfinishedProcess& process) const;

  UnfinishedProcess& Of(InstanceId instance) {
    UnfinishedProcess& process = processes_[instance];
    process.instance = instance;
    return process;
  }
  StreamKey KeyOf(const GpuWork& work) const {
    return {work.instance, ContextOf(events_, work), work.stream_id};
  }
  uint64_t WaitedNs(const StreamKey& stream) const;
  uint32_t LaunchOf(uint32_t work) const { return work_.Get<&GpuWork::launch>(work); }
  uint64_t StartNs(uint32_t launch) const { return launches_.Get<&Launch::start_ns>(launch); }
  // `launch_of`: the launch of an element.
  template <typename List, typename LaunchOf>
  void SortByLaunch(List& all, LaunchOf launch_of) const {
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return StartNs(launch_of(a)) < StartNs(launch_of(b));
    });
  }

  const Analysis& analysis_;
  const LoadedEvents& events_;
  const LaunchList& launches_;
  const GpuWorkList& work_;
  std::map<InstanceId, UnfinishedProcess> processes_;
  // When the last synchronization began that succeeded.
  std::map<StreamKey, uint64_t> stream_waits_;
  std::map<std::pair<InstanceId, uint32_t>, uint64_t> context_waits_;
  std::map<StreamKey, Stream> streams_;
  std::map<InstanceId, uint32_t> open_calls_;
  std::map<InstanceId, uint64_t> returned_ns_;  // when the last call returned
  std::set<InstanceId> lost_times_;             // of work that had ended
};

void Finder::FindFaults() {
  for (uint32_t i = 0; i < launches_.size(); ++i) {
    const int32_t result = launches_.Get<&Launch::return_value>(i);
    if (result == 0 || FaultMeaning(result).empty()) continue;
    const Launch call = launches_[i];
    UnfinishedProcess& process = Of(call.instance);
    if (process.has_faulted() && process.until_ns <= call.end_ns) continue;
    process.failed_call = i;
    process.until_ns = call.end_ns;
  }
}

void Finder::FindWaits() {
  for (const GpuWork& work : work_) {
    if (work.kind != WorkKind::kSynchronization || work.launch == GpuWork::kNoLaunch) continue;
    const Synchronization& wait = events_.synchronizations[work.index];
    const Launch call = launches_[work.launch];
    if (wait.return_value != 0 || !call.has_call || call.return_value != 0) continue;
    uint64_t* last_ns = nullptr;
    if (wait.type == kStreamSynchronize) {
      last_ns = &stream_waits_[{work.instance, wait.context_id, wait.stream_id}];
    } else if (wait.type == kContextSynchronize) {
      last_ns = &context_waits_[{work.instance, wait.context_id}];
    }
    if (last_ns != nullptr) *last_ns = std::max(*last_ns, call.start_ns);
  }
}

uint64_t Finder::WaitedNs(const StreamKey& stream) const {
  const auto of_stream = stream_waits_.find(stream);
  const auto of_context = context_waits_.find({std::get<0>(stream), std::get<1>(stream)});
  return std::max(of_stream == stream_waits_.end() ? 0 : of_stream->second,
                  of_context == context_waits_.end() ? 0 : of_context->second);
}

void Finder::FindStreams() {
  for (uint32_t i = 0; i < work_.size(); ++i) {
    const GpuWork work = work_[i];
    if (work.kind == WorkKind::kSynchronization || work.launch == GpuWork::kNoLaunch) continue;
    Stream& stream = streams_[KeyOf(work)];
    if (work.timed) {
      stream.last_timed_ns = std::max(stream.last_timed_ns, work.called_ns);
      stream.ended_ns = std::max(stream.ended_ns, work.end_ns);
    } else {
      stream.untimed.push_back(i);
    }
  }
}

// Programmatic dependent launch lets a kernel begin before the previous one has ended. Nodes of
// graphs may run at once in any case.
void Finder::FindSpans() {
  for (const GpuWork& work : work_) {
    if (work.kind != WorkKind::kKernel || !work.timed || work.origin != NodeOrigin::kNoNode) {
      continue;
    }
    const auto stream = streams_.find(KeyOf(work));
    if (stream == streams_.end() || stream->second.untimed.size() < 2) continue;
    const uint64_t start_ns = events_.kernels.Get<&Kernel::start_ns>(work.index);
    stream->second.spans.emplace_back(start_ns, start_ns + work.duration_ns);
  }
}

void Finder::AddStreams() {
  for (auto& [key, stream] : streams_) {
    const auto& [instance, context, id] = key;
    const uint64_t ended_ns = std::max(stream.last_timed_ns, WaitedNs(key));
    UnfinishedStream unfinished{.context_id = context, .ended_ns = stream.ended_ns};
    for (const uint32_t work : stream.untimed) {
      if (StartNs(LaunchOf(work)) < ended_ns) {
        lost_times_.insert(instance);
      } else {
        unfinished.work.push_back(work);
      }
    }
    if (unfinished.work.empty()) continue;
    if (unfinished.work.size() > kMostAhead) lost_times_.insert(instance);
    SortByLaunch(unfinished.work, [this](uint32_t work) { return LaunchOf(work); });
    auto& spans = stream.spans;
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i) {
      if (spans[i].first < spans[i - 1].second) unfinished.overlaps = true;
    }
    Of(instance).streams.push_back(std::move(unfinished));
  }
}

// Instances of which records were lost on the way, whatever their streams did.
std::set<InstanceId> Finder::LosingInstances() const {
  std::set<InstanceId> losing;
  for (const Loss& loss : events_.losses) {
    const LossInfo* info = FindLoss(analysis_.model.Text(loss.name));
    const bool loses =
        info != nullptr &&
        (info->kind == LossKind::kCuptiDropped || info->kind == LossKind::kWireRingFull ||
         info->kind == LossKind::kWireTorn || info->kind == LossKind::kWireInvalid);
    if (loses) losing.insert(loss.instance);
  }
  return losing;
}

void Finder::AddUndelivered() {
  std::map<InstanceId, uint64_t> waited_ns;
  for (const auto& [context, time_ns] : context_waits_) {
    waited_ns[context.first] = std::max(waited_ns[context.first], time_ns);
  }
  // A process that ended in order has handed out all that CUPTI had: the rest is in the ledger.
  std::set<InstanceId> flushed;
  for (const GpuProcess& process : events_.gpu_processes) {
    if (process.state == InjectState::kFinished) flushed.insert(process.instance);
  }
  // The latest launch of each thread of which GPU work was delivered.
  std::map<std::pair<InstanceId, uint32_t>, uint64_t> delivered_ns;
  for (const GpuWork& work : work_) {
    if (work.kind == WorkKind::kSynchronization || work.launch == GpuWork::kNoLaunch) continue;
    uint64_t& last_ns = delivered_ns[{work.instance, launches_.Get<&Launch::tid>(work.launch)}];
    last_ns = std::max(last_ns, work.called_ns);
  }
  const std::set<InstanceId> losing = LosingInstances();
  std::map<std::tuple<InstanceId, StackId, StackId>, LaunchGroup> by_stack;
  for (uint32_t i = 0; i < launches_.size(); ++i) {
    const Launch launch = launches_[i];
    if (!IsPending(launch) || flushed.contains(launch.instance)) continue;
    if (launch.start_ns < waited_ns[launch.instance]) continue;
    if (launch.start_ns < delivered_ns[{launch.instance, launch.tid}]) {
      // Its record was lost, unless CUPTI keeps it back because a stream is stuck that the thread
      // waits for.
      const auto call = open_calls_.find(launch.instance);
      const bool waits =
          call != open_calls_.end() && launches_.Get<&Launch::tid>(call->second) == launch.tid;
      if (!waits || losing.contains(launch.instance)) continue;
    }
    LaunchGroup& same = by_stack[{launch.instance, launch.stack, launch.python_stack}];
    if (same.count++ == 0) same.first = i;
  }
  for (const auto& [key, launches] : by_stack) {
    Of(std::get<0>(key)).undelivered.push_back(launches);
  }
}

// Where several threads wait, the call of the one that has waited the longest.
void Finder::FindOpenCalls() {
  std::map<std::pair<InstanceId, uint32_t>, uint32_t> last_calls;  // by thread
  for (uint32_t i = 0; i < launches_.size(); ++i) {
    const InstanceId instance = launches_.Get<&Launch::instance>(i);
    uint64_t& returned_ns = returned_ns_[instance];
    if (launches_.Get<&Launch::has_call>(i)) {
      returned_ns = std::max(returned_ns, launches_.Get<&Launch::end_ns>(i));
    }
    uint32_t& last =
        last_calls.try_emplace({instance, launches_.Get<&Launch::tid>(i)}, i).first->second;
    if (StartNs(i) > StartNs(last)) last = i;
  }
  for (const auto& [thread, call] : last_calls) {
    if (launches_.Get<&Launch::has_call>(call)) continue;
    uint32_t& open_call = open_calls_.try_emplace(thread.first, call).first->second;
    if (StartNs(call) < StartNs(open_call)) open_call = call;
  }
}

void Finder::FindEnds() {
  const uint64_t recorded_until_ns = EndOf(analysis_.model);
  std::set<InstanceId> keeps_times;
  for (const GpuProcess& process : events_.gpu_processes) {
    if (process.times_on_host) keeps_times.insert(process.instance);
  }
  for (const auto& [key, stream] : streams_) {
    const auto process = processes_.find(std::get<0>(key));
    if (process == processes_.end()) continue;
    process->second.ended_ns = std::max(process->second.ended_ns, stream.ended_ns);
  }
  const std::map<uint32_t, uint64_t>& xids = analysis_.gpus.xids();
  for (auto& [instance, process] : processes_) {
    process.returned_ns = returned_ns_[instance];
    if (const auto call = open_calls_.find(instance); call != open_calls_.end()) {
      process.open_call = call->second;
    }
    for (const UnfinishedStream& stream : process.streams) {
      const auto xid = xids.find(work_.Get<&GpuWork::gpu>(stream.work.front()));
      if (xid != xids.end()) process.xid = xid->second;
    }
    const ProcessId id =
        analysis_.processes.At(analysis_.correlation.PidOf(instance), recorded_until_ns);
    const uint64_t ended_ns = id ? analysis_.processes[id].end_ns : 0;
    process.has_ended = ended_ns != 0;
    process.knows_ends = process.has_faulted() || process.xid != 0
                             ? keeps_times.contains(instance)
                             : !lost_times_.contains(instance);
    if (!process.has_faulted()) process.until_ns = ended_ns != 0 ? ended_ns : recorded_until_ns;
    CountCandidates(process);
  }
}

void Finder::CountCandidates(UnfinishedProcess& process) const {
  for (UnfinishedStream& stream : process.streams) {
    const auto is_later = [&](uint32_t work) {
      return LaunchOf(work) != LaunchOf(stream.work.front());
    };
    const bool may_be_any = stream.overlaps || !process.knows_ends;
    const auto end = may_be_any ? stream.work.end()
                                : std::find_if(stream.work.begin(), stream.work.end(), is_later);
    stream.candidates = static_cast<size_t>(end - stream.work.begin());
  }
}

std::vector<UnfinishedProcess> Finder::Find() {
  FindFaults();
  const Correlation::Counts& counts = analysis_.correlation.counts;
  const uint64_t owed = counts.launches_pending + counts.launches_lost;
  if (processes_.empty() && counts.work_without_time + owed == 0) return {};
  FindWaits();
  FindStreams();
  FindSpans();
  AddStreams();
  FindOpenCalls();
  AddUndelivered();
  FindEnds();
  std::vector<UnfinishedProcess> all;
  for (auto& [instance, process] : processes_) {
    SortByLaunch(process.streams,
                 [this](const UnfinishedStream& stream) { return LaunchOf(stream.work.front()); });
    SortByLaunch(process.undelivered, [](const LaunchGroup& launches) { return launches.first; });
    all.push_back(std::move(process));
  }
  std::stable_sort(
      all.begin(), all.end(), [](const UnfinishedProcess& a, const UnfinishedProcess& b) {
        return std::pair(!a.has_faulted(), a.until_ns) < std::pair(!b.has_faulted(), b.until_ns);
      });
  return all;
}

}  // namespace

std::vector<UnfinishedProcess> FindUnfinished(const Analysis& analysis) {
  std::vector<UnfinishedProcess> found = analysis.memo.Get<std::vector<UnfinishedProcess>>(
      "", [&] { return Finder(analysis).Find(); });
  const Selection& shown = analysis.shown;
  if (found.empty()) return found;
  std::set<InstanceId> launching;
  for (const Launch& launch : analysis.Launches()) launching.insert(launch.instance);
  const bool has_time_range = shown.from_ns != 0 || shown.to_ns != UINT64_MAX;
  std::erase_if(found, [&](const UnfinishedProcess& process) {
    if (launching.contains(process.instance)) return false;
    const uint32_t pid = analysis.correlation.PidOf(process.instance);
    return !has_time_range || shown.chooses_calls || (shown.pids && !shown.pids->contains(pid));
  });
  return found;
}

uint64_t PendingNs(const Analysis& analysis, const UnfinishedProcess& process, uint32_t launch) {
  const uint64_t end_ns = analysis.correlation.launches.Get<&Launch::end_ns>(launch);
  return process.until_ns - std::min(process.until_ns, end_ns);
}

bool IsStuck(const Analysis& analysis, const UnfinishedProcess& process) {
  if (process.has_faulted() || process.xid != 0) return true;
  const auto stuck_ns = [&](uint32_t launch, uint64_t ended_ns) {
    return std::min(PendingNs(analysis, process, launch),
                    process.until_ns - std::min(process.until_ns, ended_ns));
  };
  if (process.knows_ends || process.open_call != GpuWork::kNoLaunch) {
    for (const UnfinishedStream& stream : process.streams) {
      const uint32_t launch = analysis.correlation.work.Get<&GpuWork::launch>(stream.work.front());
      if (stuck_ns(launch, stream.ended_ns) >= kLongPendingNs) return true;
    }
  }
  if (process.undelivered.empty()) return false;
  const uint32_t oldest = process.undelivered.front().first;
  const bool waits_long =
      process.open_call != GpuWork::kNoLaunch &&
      stuck_ns(oldest, analysis.correlation.launches.Get<&Launch::start_ns>(process.open_call)) >=
          kDeliveredAfterNs;
  return waits_long ||
         stuck_ns(oldest, std::max(process.ended_ns, process.returned_ns)) >= kDeliveredAfterNs;
}

bool HasStuckWork(const Analysis& analysis) {
  const std::vector<UnfinishedProcess> found = FindUnfinished(analysis);
  return std::any_of(found.begin(), found.end(),
                     [&](const auto& process) { return IsStuck(analysis, process); });
}

uint64_t CountCandidates(const UnfinishedProcess& process) {
  uint64_t count = 0;
  for (const UnfinishedStream& stream : process.streams) count += stream.candidates;
  for (const LaunchGroup& launches : process.undelivered) count += launches.count;
  return count;
}

GraphCreations::GraphCreations(const Analysis& analysis) : analysis_(analysis) {
  for (const GraphNode& node : analysis.model.events.graph_nodes) {
    if (node.change != GraphNodeChange::kCloned) continue;
    nodes_[{node.instance, GraphIdOf(node.graph_id, node.node_id)}].push_back(node.node_id);
  }
  if (nodes_.empty()) return;
  const LaunchList& launches = analysis.correlation.launches;
  for (uint32_t i = 0; i < launches.size(); ++i) {
    if (launches.Get<&Launch::graph_nodes>(i) == 0) continue;
    calls_[{launches.Get<&Launch::instance>(i), launches.Get<&Launch::correlation_id>(i)}] = i;
  }
}

std::vector<LaunchGroup> GraphCreations::Of(const GpuWork& replay) const {
  const LaunchList& launches = analysis_.correlation.launches;
  const uint32_t graph =
      analysis_.model.events.graph_launches.Get<&GraphLaunch::graph_id>(replay.index);
  const auto nodes = nodes_.find({replay.instance, graph});
  if (nodes == nodes_.end()) return {};
  const uint64_t time_ns = launches.Get<&Launch::start_ns>(replay.launch);
  std::set<uint32_t> places;
  for (const uint64_t node : nodes->second) {
    const GraphNodes::Origin origin =
        analysis_.graph_nodes.OriginOf(replay.instance, node, time_ns);
    if (origin.created == nullptr) continue;
    const auto call = calls_.find({replay.instance, origin.created->correlation_id});
    if (call != calls_.end()) places.insert(call->second);
  }
  std::map<std::pair<StackId, StackId>, LaunchGroup> by_stack;
  for (const uint32_t place : places) {
    const Launch call = launches[place];
    LaunchGroup& same = by_stack[{call.stack, call.python_stack}];
    if (same.count++ == 0) same.first = place;
  }
  std::vector<LaunchGroup> creations;
  for (const auto& [stack, group] : by_stack) creations.push_back(group);
  std::sort(creations.begin(), creations.end(), [&](const LaunchGroup& a, const LaunchGroup& b) {
    return launches.Get<&Launch::start_ns>(a.first) < launches.Get<&Launch::start_ns>(b.first);
  });
  return creations;
}

}  // namespace xpu
