#include "report/correlate.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

namespace xpu {
namespace {

// How far a stack may lie before its call, and fitted GPU times before their launch: more than any
// error of the clocks, less than any wrap of the ids (2^32 launches take hours).
constexpr uint64_t kToleranceNs = 1'000'000;
// Stacks of one id closer than this, without a call between them, are of one launch.
constexpr uint64_t kSameLaunchNs = 1'000'000'000;

struct Seen {
  InstanceId instance;
  uint32_t correlation_id;
  uint32_t index;
  uint64_t time_ns;
  bool is_stack;
};

auto IdOf(const Launch& launch) { return std::tuple(launch.instance, launch.correlation_id); }

// Calls and stacks by id, then time; of one time the call first.
std::vector<Seen> SortById(const EventBatch& events) {
  std::vector<Seen> all;
  all.reserve(events.api_calls.size() + events.launch_stacks.size());
  for (uint32_t i = 0; i < events.api_calls.size(); ++i) {
    const ApiCall& call = events.api_calls[i];
    all.push_back({call.instance, call.correlation_id, i, call.start_ns, false});
  }
  for (uint32_t i = 0; i < events.launch_stacks.size(); ++i) {
    const LaunchStack& stack = events.launch_stacks[i];
    all.push_back({stack.instance, stack.correlation_id, i, stack.time_ns, true});
  }
  std::sort(all.begin(), all.end(), [](const Seen& a, const Seen& b) {
    return std::tuple(a.instance, a.correlation_id, a.time_ns, a.is_stack, a.index) <
           std::tuple(b.instance, b.correlation_id, b.time_ns, b.is_stack, b.index);
  });
  return all;
}

class Builder {
 public:
  Builder(const Model& model, const Clocks& clocks, const ApiNames& names)
      : model_(model), clocks_(clocks), names_(names) {}

  Correlation Build() {
    FindProcesses();
    FindLaunches();
    FindThreads();
    CollectWork();
    Count();
    return std::move(result_);
  }

 private:
  void FindProcesses();
  void FindLaunches();
  void AddCall(const ApiCall& call);
  void AddStack(const LaunchStack& stack);
  bool Joins(const Launch& launch, const LaunchStack& stack) const;
  void FindThreads();
  void CollectWork();
  template <typename Record>
  GpuWork& AddWork(WorkKind kind, const Record& record, uint32_t index);
  void Match(GpuWork& work, uint64_t start_clock_ns, uint64_t end_clock_ns);
  std::span<Launch> LaunchesOf(const GpuWork& work);
  void Count();

  const Model& model_;
  const Clocks& clocks_;
  const ApiNames& names_;
  Correlation result_;
  std::map<std::pair<InstanceId, uint32_t>, uint32_t> devices_;  // by context
};

void Builder::FindProcesses() {
  for (const GpuProcess& event : model_.events.gpu_processes) {
    Correlation::Process& process = result_.processes[event.instance];
    if (event.pid != 0) process.pid = event.pid;
    if (event.namespace_pid != 0) process.namespace_pid = event.namespace_pid;
  }
  for (const LaunchStack& stack : model_.events.launch_stacks) {
    Correlation::Process& process = result_.processes[stack.instance];
    if (process.pid == 0) process.pid = stack.pid;
  }
}

void Builder::FindLaunches() {
  const std::vector<Seen> all = SortById(model_.events);
  result_.launches.reserve(std::max(model_.events.api_calls.size(),  //
                                    model_.events.launch_stacks.size()));
  for (const Seen& seen : all) {
    if (seen.is_stack) {
      AddStack(model_.events.launch_stacks[seen.index]);
    } else {
      AddCall(model_.events.api_calls[seen.index]);
    }
  }
  for (size_t i = 0; i < result_.launches.size(); ++i) {
    Launch& launch = result_.launches[i];
    launch.kind = KindOfApi(names_.Of(launch.instance, launch.domain, launch.callback_id));
    const bool again =
        (i > 0 && IdOf(result_.launches[i - 1]) == IdOf(launch)) ||
        (i + 1 < result_.launches.size() && IdOf(result_.launches[i + 1]) == IdOf(launch));
    if (launch.has_stack) launch.stack_match = again ? MatchKind::kByIdAndTime : MatchKind::kById;
  }
}

void Builder::AddCall(const ApiCall& call) {
  Launch* launch = result_.launches.empty() ? nullptr : &result_.launches.back();
  const bool joins = launch != nullptr && launch->instance == call.instance &&
                     launch->correlation_id == call.correlation_id && !launch->has_call &&
                     call.start_ns - launch->start_ns < kToleranceNs;
  if (!joins) launch = &result_.launches.emplace_back();
  launch->instance = call.instance;
  launch->correlation_id = call.correlation_id;
  launch->domain = call.domain;
  launch->callback_id = call.callback_id;
  launch->has_call = true;
  launch->return_value = call.return_value;
  launch->start_ns = call.start_ns;
  launch->end_ns = std::max(call.start_ns, call.end_ns);
  launch->program_tid = call.tid;
}

// Launches and stacks come in order of time, so `launch` is the last one before `stack`.
bool Builder::Joins(const Launch& launch, const LaunchStack& stack) const {
  if (launch.instance != stack.instance || launch.correlation_id != stack.correlation_id) {
    return false;
  }
  const uint64_t slack_ns = launch.has_call ? kToleranceNs : kSameLaunchNs;
  return stack.time_ns <= launch.end_ns || stack.time_ns - launch.end_ns < slack_ns;
}

void Builder::AddStack(const LaunchStack& stack) {
  if (!result_.launches.empty() && Joins(result_.launches.back(), stack)) {
    Launch& launch = result_.launches.back();
    if (launch.has_stack) {
      ++result_.counts.stacks_duplicate;
      return;
    }
    launch.has_stack = true;
    launch.stack = stack.stack;
    launch.stack_flags = stack.stack_flags;
    launch.pid = stack.pid;
    launch.tid = stack.tid;
    return;
  }
  Launch& launch = result_.launches.emplace_back();
  launch.instance = stack.instance;
  launch.correlation_id = stack.correlation_id;
  launch.domain = stack.domain;
  launch.callback_id = stack.callback_id;
  launch.has_stack = true;
  launch.stack = stack.stack;
  launch.stack_flags = stack.stack_flags;
  launch.pid = stack.pid;
  launch.tid = stack.tid;
  launch.start_ns = stack.time_ns;
  launch.end_ns = stack.time_ns;
}

// Calls know their thread as the program sees it, stacks as the recorder does: what the pairs say
// of a thread holds for its calls without a stack.
void Builder::FindThreads() {
  struct Thread {
    uint32_t pid;
    uint32_t tid;
  };
  std::unordered_map<InstanceId, std::unordered_map<uint32_t, Thread>> threads;
  for (const Launch& launch : result_.launches) {
    if (!launch.has_stack || !launch.has_call) continue;
    threads[launch.instance].try_emplace(launch.program_tid, Thread{launch.pid, launch.tid});
  }
  for (Launch& launch : result_.launches) {
    if (launch.has_stack) continue;
    launch.pid = result_.processes[launch.instance].pid;
    launch.tid = launch.program_tid;
    const auto& known = threads[launch.instance];
    if (const auto found = known.find(launch.program_tid); found != known.end()) {
      launch.pid = found->second.pid;
      launch.tid = found->second.tid;
    }
  }
}

template <typename Record>
GpuWork& Builder::AddWork(WorkKind kind, const Record& record, uint32_t index) {
  GpuWork& work = result_.work.emplace_back();
  work.instance = record.instance;
  work.kind = kind;
  work.index = index;
  work.correlation_id = record.correlation_id;
  work.stream_id = record.stream_id;
  // Synchronisations name only their context, which has had other work before.
  uint32_t& device_id = devices_[{record.instance, record.context_id}];
  if constexpr (requires { record.device_id; }) device_id = record.device_id;
  work.device_id = device_id;
  // CUPTI writes 0 for "no time", and end before start when its device buffers overflowed.
  work.timed = record.start_ns != 0 && record.end_ns >= record.start_ns;
  Match(work, record.start_ns, record.end_ns);
  return work;
}

std::span<Launch> Builder::LaunchesOf(const GpuWork& work) {
  const auto [first, last] = std::equal_range(
      result_.launches.begin(), result_.launches.end(), work, [](const auto& a, const auto& b) {
        return std::tuple(a.instance, a.correlation_id) < std::tuple(b.instance, b.correlation_id);
      });
  return {first, last};
}

void Builder::Match(GpuWork& work, uint64_t start_clock_ns, uint64_t end_clock_ns) {
  const std::span<Launch> candidates = LaunchesOf(work);
  const ClockFit& clock = clocks_.Of(work.instance);
  if (work.timed) {
    const uint64_t not_before_ns = candidates.empty() ? 0 : candidates.front().start_ns;
    work.start_ns = clock.ToMonotonic(start_clock_ns, not_before_ns);
    work.end_ns = std::max(work.start_ns, clock.ToMonotonic(end_clock_ns, work.start_ns));
    work.duration_ns = end_clock_ns - start_clock_ns;
  }
  if (candidates.empty()) return;
  // The last launch that is not later than the work; without a time there is no telling.
  size_t best = 0;
  if (candidates.size() > 1) {
    if (!work.timed) return;
    const auto later =
        std::partition_point(candidates.begin(), candidates.end(), [&](const Launch& launch) {
          return launch.start_ns <= work.start_ns ||
                 launch.start_ns - work.start_ns <= kToleranceNs;
        });
    if (later != candidates.begin()) best = static_cast<size_t>(later - candidates.begin()) - 1;
  }
  Launch& launch = candidates[best];
  ++launch.work_count;
  work.launch = static_cast<uint32_t>(&launch - result_.launches.data());
  work.match = candidates.size() > 1 ? MatchKind::kByIdAndTime : MatchKind::kById;
}

void Builder::CollectWork() {
  const EventBatch& events = model_.events;
  result_.work.reserve(events.kernels.size() + events.memcpys.size() + events.memsets.size() +
                       events.graph_launches.size() + events.synchronizations.size());
  const auto add_all = [&](WorkKind kind, const auto& records) {
    for (uint32_t i = 0; i < records.size(); ++i) AddWork(kind, records[i], i);
  };
  add_all(WorkKind::kKernel, events.kernels);
  add_all(WorkKind::kMemcpy, events.memcpys);
  add_all(WorkKind::kMemset, events.memsets);
  add_all(WorkKind::kGraph, events.graph_launches);
  add_all(WorkKind::kSynchronization, events.synchronizations);
}

void Builder::Count() {
  Correlation::Counts& counts = result_.counts;
  for (const Launch& launch : result_.launches) {
    if (!launch.stack) ++counts.stacks_missing;
    if (launch.kind == ApiKind::kOther) continue;
    ++counts.launches_seen;
    if (launch.work_count > 0) {
      ++counts.launches_matched;
    } else if (launch.return_value != 0) {
      ++counts.launches_failed;
    } else {
      ++counts.launches_pending;
    }
  }
  for (const GpuWork& work : result_.work) {
    result_.processes[work.instance].has_work = true;
    if (!work.timed && work.kind != WorkKind::kSynchronization) ++counts.work_without_time;
    if (work.kind != WorkKind::kKernel && work.kind != WorkKind::kGraph) continue;
    if (work.launch == GpuWork::kNoLaunch) {
      ++counts.kernels_without_launch;
    } else if (work.timed) {
      const auto margin =
          static_cast<int64_t>(work.start_ns - result_.launches[work.launch].start_ns);
      if (margin < 0) ++counts.kernels_before_launch;
      result_.worst_margin_ns = std::min(result_.worst_margin_ns.value_or(margin), margin);
    }
  }
}

}  // namespace

bool IsPending(const Launch& launch) {
  return launch.kind != ApiKind::kOther && launch.work_count == 0 && launch.return_value == 0;
}

Correlation Correlate(const Model& model, const Clocks& clocks, const ApiNames& names) {
  return Builder(model, clocks, names).Build();
}

}  // namespace xpu
