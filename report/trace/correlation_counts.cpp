#include "report/trace/correlation_counts.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "format/base/saturated.h"
#include "format/losses.h"

namespace xpu {
namespace {

// Losses that may have been the record of a launch.
constexpr std::array kTakeRecords = {LossKind::kCuptiDropped, LossKind::kCuptiNotDelivered,
                                     LossKind::kWireRingFull, LossKind::kWireTorn,
                                     LossKind::kWireInvalid};
// Losses that may have been the stack of one.
constexpr std::array kTakeStacks = {LossKind::kLaunchStackMissing, LossKind::kLaunchRingFull};

// Records that are known to be lost, to be taken by launches that miss them.
class Lost {
 public:
  Lost(const Model& model, std::span<const LossKind> kinds) {
    for (const Loss& loss : model.events.losses) {
      const LossInfo* info = FindLoss(model.Text(loss.name));
      if (info == nullptr || std::find(kinds.begin(), kinds.end(), info->kind) == kinds.end()) {
        continue;
      }
      uint64_t& count = loss.instance ? of_instances_[loss.instance] : of_pids_[loss.pid];
      count = AddSaturated(count, loss.count);
    }
  }

  // Up to `wanted` of them: the instance's own, its process's, those of nobody (pid 0).
  uint64_t Take(InstanceId instance, uint32_t pid, uint64_t wanted) {
    uint64_t taken = TakeFrom(of_instances_[instance], wanted);
    taken += TakeFrom(of_pids_[pid], wanted - taken);
    return taken + TakeFrom(of_pids_[0], wanted - taken);
  }

 private:
  static uint64_t TakeFrom(uint64_t& left, uint64_t wanted) {
    const uint64_t taken = std::min(left, wanted);
    left -= taken;
    return taken;
  }
  std::map<InstanceId, uint64_t> of_instances_;
  std::map<uint32_t, uint64_t> of_pids_;
};

class Counter {
 public:
  Counter(const Model& model, const GraphNodes& graph_nodes, const Correlation& correlation,
          const Selection& shown)
      : model_(model), graph_nodes_(graph_nodes), correlation_(correlation), shown_(shown) {}

  Correlation::Counts Count() {
    for (const Launch& launch : Selected(correlation_.launches, shown_.launches)) {
      CountLaunch(launch);
    }
    ExplainUnmatched();
    for (const GpuWork& work : Selected(correlation_.work, shown_.work)) CountWork(work);
    for (const GraphLaunch& replay : model_.events.graph_launches) {
      const GraphNodes::Size size = graph_nodes_.SizeOf(replay.instance, replay.graph_id);
      counts_.hidden_kernels = AddSaturated(counts_.hidden_kernels, size.kernels);
      counts_.hidden_copies_and_sets =
          AddSaturated(counts_.hidden_copies_and_sets, size.copies_and_sets);
    }
    CountLate();
    return counts_;
  }

 private:
  void CountLaunch(const Launch& launch);
  void ExplainUnmatched();
  void CountWork(const GpuWork& work);
  void CountWithoutLaunch(WorkKind kind);
  void CountLate();

  const Model& model_;
  const GraphNodes& graph_nodes_;
  const Correlation& correlation_;
  const Selection& shown_;
  Correlation::Counts counts_;
  std::map<InstanceId, uint64_t> unmatched_;
};

void Counter::CountLaunch(const Launch& launch) {
  if (!launch.stack) ++counts_.stacks_missing;
  if (launch.probe == 0 && launch.stack_match == MatchKind::kByNesting) {
    ++counts_.stacks_by_nesting;
  }
  switch (LaunchStatusOf(launch)) {
    case LaunchStatus::kNoLaunch:
      break;
    case LaunchStatus::kMatched:
      ++counts_.launches_matched;
      break;
    case LaunchStatus::kFailed:
      ++(launch.probe != 0 ? counts_.launches_probed_failed : counts_.launches_failed);
      break;
    case LaunchStatus::kCaptured:
      ++counts_.launches_captured;
      break;
    case LaunchStatus::kProbed:
      ++counts_.launches_probed;
      break;
    case LaunchStatus::kUnmatched:
      ++unmatched_[launch.instance];
      break;
  }
}

void Counter::ExplainUnmatched() {
  Lost lost(model_, kTakeRecords);
  for (const auto& [instance, count] : unmatched_) {
    const uint64_t explained = lost.Take(instance, correlation_.PidOf(instance), count);
    counts_.launches_lost += explained;
    counts_.launches_pending += count - explained;
  }
  counts_.launches_seen =
      counts_.launches_matched + counts_.launches_pending + counts_.launches_lost;
}

void Counter::CountWithoutLaunch(WorkKind kind) {
  switch (kind) {
    case WorkKind::kKernel:
    case WorkKind::kGraph:
      ++counts_.kernels_without_launch;
      break;
    case WorkKind::kMemcpy:
    case WorkKind::kMemset:
      ++counts_.work_without_launch;
      break;
    case WorkKind::kSynchronization:
      ++counts_.waits_without_launch;
      break;
  }
}

void Counter::CountWork(const GpuWork& work) {
  if (!work.timed && work.kind != WorkKind::kSynchronization) {
    ++counts_.work_without_time;
    if (work.origin != NodeOrigin::kNoNode) ++counts_.node_work_without_time;
  }
  if (work.origin == NodeOrigin::kUnknown || work.origin == NodeOrigin::kBeforeRecording) {
    ++counts_.node_work_without_origin;
  }
  if (work.kind != WorkKind::kSynchronization) {
    ++counts_.work_by_match[static_cast<size_t>(work.match)];
  }
  if (work.launch == GpuWork::kNoLaunch) return CountWithoutLaunch(work.kind);
  if (work.kind != WorkKind::kKernel && work.kind != WorkKind::kGraph) return;
  if (!work.timed) return;
  const auto margin = static_cast<int64_t>(work.start_ns - work.called_ns);
  if (margin < 0) ++counts_.kernels_before_launch;
  counts_.worst_margin_ns = std::min(counts_.worst_margin_ns.value_or(margin), margin);
}

template <auto kTime>
uint64_t CountAfter(uint64_t end_ns, const auto& list) {
  uint64_t count = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list.template Get<kTime>(i) > end_ns) ++count;
  }
  return count;
}

void Counter::CountLate() {
  const LoadedEvents& events = model_.events;
  if (events.recording_end.empty()) return;
  const uint64_t end_ns = events.recording_end.back().time_ns;
  const auto count = [&](const auto& list, auto time) {
    counts_.late_events += static_cast<uint64_t>(std::count_if(
        list.begin(), list.end(), [&](const auto& event) { return event.*time > end_ns; }));
  };
  count(events.process_events, &ProcessEvent::time_ns);
  count(events.mappings, &Mapping::time_ns);
  count(Selected(events.cpu_samples, shown_.events.cpu_samples), &CpuSample::time_ns);
  counts_.late_events += CountAfter<&ApiCall::start_ns>(end_ns, events.api_calls);
  counts_.late_events += CountAfter<&LaunchStack::time_ns>(end_ns, events.launch_stacks);
  count(events.graph_nodes, &GraphNode::time_ns);
  count(Selected(events.probe_hits, shown_.events.probe_hits), &ProbeHit::time_ns);
  for (const GpuWork& work : Selected(correlation_.work, shown_.work)) {
    if (work.timed && work.start_ns > end_ns && work.start_ns - end_ns > kToleranceNs) {
      ++counts_.late_events;
    }
  }
}

// Where the first part that is here was cut off from those before. A process numbers its calls
// in the order in which they begin, and a call is written when it ends.
class FirstCut {
 public:
  FirstCut(const Model& model, const Selected<LaunchList>& launches)
      : begins_late_(model.parts.first > 1) {
    if (begins_late_) FindFirstCalls(launches);
  }

  // The call is, or may be, in a part before the first that is here.
  bool IsBefore(InstanceId instance, uint32_t correlation_id) const {
    if (!begins_late_) return false;
    const auto first = first_calls_.find(instance);
    return first == first_calls_.end() || correlation_id < first->second;
  }

 private:
  void FindFirstCalls(const Selected<LaunchList>& launches);

  bool begins_late_;
  std::map<InstanceId, uint32_t> first_calls_;
};

// A call that ended in the part before began before the first one here ended, so its number is less
// than that of all that began later. Threads overlap: the lowest number here is no such bound.
void FirstCut::FindFirstCalls(const Selected<LaunchList>& launches) {
  std::map<InstanceId, uint64_t> first_ends;
  for (const Launch& launch : launches) {
    if (!launch.has_call || launch.probe != 0) continue;
    uint64_t& end_ns = first_ends.try_emplace(launch.instance, launch.end_ns).first->second;
    end_ns = std::min(end_ns, launch.end_ns);
  }
  for (const Launch& launch : launches) {
    if (!launch.has_call || launch.probe != 0) continue;
    if (launch.start_ns <= first_ends[launch.instance]) continue;
    uint32_t& id = first_calls_.try_emplace(launch.instance, launch.correlation_id).first->second;
    id = std::min(id, launch.correlation_id);
  }
}

}  // namespace

MissingCounterparts FindMissingCounterparts(const Model& model, const Correlation& correlation,
                                            const Selection& shown) {
  MissingCounterparts found;
  if (model.parts.first <= 1 && !model.parts.is_continued) return found;
  const Selected launches(correlation.launches, shown.launches);
  const FirstCut cut(model, launches);
  for (const Launch& launch : launches) {
    if (launch.probe != 0) continue;
    if (!launch.stack && cut.IsBefore(launch.instance, launch.correlation_id)) ++found.stacks;
  }
  for (const GpuWork& work : Selected(correlation.work, shown.work)) {
    if (work.launch != GpuWork::kNoLaunch || !cut.IsBefore(work.instance, work.correlation_id)) {
      continue;
    }
    const bool is_kernel = work.kind == WorkKind::kKernel || work.kind == WorkKind::kGraph;
    const bool is_wait = work.kind == WorkKind::kSynchronization;
    ++(is_kernel ? found.kernels : is_wait ? found.waits : found.copies);
  }
  // CUPTI hands over its buffers in any order: which ones were to come is not known.
  if (model.parts.is_continued) found.pending = CountsOf(correlation, shown).launches_pending;
  return found;
}

uint64_t StacksNotCounted(const Model& model, const Correlation& correlation,
                          const Selection& shown) {
  if (CountsOf(correlation, shown).stacks_missing == 0) return 0;
  const Selected launches(correlation.launches, shown.launches);
  const FirstCut cut(model, launches);
  std::map<InstanceId, uint64_t> missing;
  for (const Launch& launch : launches) {
    if (launch.stack) continue;
    if (launch.probe != 0 || !cut.IsBefore(launch.instance, launch.correlation_id)) {
      ++missing[launch.instance];
    }
  }
  Lost lost(model, kTakeStacks);
  uint64_t left = 0;
  for (const auto& [instance, count] : missing) {
    left += count - lost.Take(instance, correlation.PidOf(instance), count);
  }
  return left;
}

Correlation::Counts CountCorrelation(const Model& model, const GraphNodes& graph_nodes,
                                     const Correlation& correlation, const Selection& shown) {
  return Counter(model, graph_nodes, correlation, shown).Count();
}

}  // namespace xpu
