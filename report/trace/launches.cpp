#include "report/trace/launches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "report/base/flat_map.h"
#include "report/trace/probe_launches.h"

namespace xpu {
namespace {

// Stacks of one id closer than this, without a call between them, are of one launch.
constexpr uint64_t kSameLaunchNs = 1'000'000'000;

auto IdOf(const Launch& launch) { return std::tuple(launch.instance, launch.correlation_id); }

// A correlation id and the place of its event, in a list that is in order of time: ascending, they
// are by id, then time.
struct IdAndPlace {
  uint32_t id;
  uint32_t place;
  friend auto operator<=>(const IdAndPlace&, const IdAndPlace&) = default;
};

using IdList = std::vector<IdAndPlace, HugePageAllocator<IdAndPlace>>;

// The calls and stacks of one instance, by id, then time.
struct Seen {
  IdList calls;
  IdList stacks;
};

void SortById(IdList& events) {
  if (!std::is_sorted(events.begin(), events.end())) std::sort(events.begin(), events.end());
}

// Growing step by step, the lists would take twice their memory.
template <auto kInstance, typename Events>
void Reserve(const Events& events, IdList Seen::*list, std::map<InstanceId, Seen>& instances) {
  std::map<InstanceId, size_t> counts;
  for (const auto& common : events.templates()) counts[common.*kInstance] = events.size();
  if (counts.size() > 1) {
    for (auto& [instance, count] : counts) count = 0;
    Recent count_of(counts);
    for (uint32_t i = 0; i < events.size(); ++i) ++count_of[events.template Get<kInstance>(i)];
  }
  for (const auto& [instance, count] : counts) (instances[instance].*list).reserve(count);
}

std::map<InstanceId, Seen> SortById(const LoadedEvents& events) {
  std::map<InstanceId, Seen> instances;
  Reserve<&ApiCall::instance>(events.api_calls, &Seen::calls, instances);
  Reserve<&LaunchStack::instance>(events.launch_stacks, &Seen::stacks, instances);
  Recent seen_of(instances);
  for (uint32_t i = 0; i < events.api_calls.size(); ++i) {
    seen_of[events.api_calls.Get<&ApiCall::instance>(i)].calls.push_back(
        {events.api_calls.Get<&ApiCall::correlation_id>(i), i});
  }
  for (uint32_t i = 0; i < events.launch_stacks.size(); ++i) {
    seen_of[events.launch_stacks.Get<&LaunchStack::instance>(i)].stacks.push_back(
        {events.launch_stacks.Get<&LaunchStack::correlation_id>(i), i});
  }
  for (auto& [instance, seen] : instances) {
    SortById(seen.calls);
    SortById(seen.stacks);
  }
  return instances;
}

Launch WithoutCall(const LaunchStack& stack) {
  Launch launch;
  launch.instance = stack.instance;
  launch.correlation_id = stack.correlation_id;
  launch.domain = stack.domain;
  launch.callback_id = stack.callback_id;
  launch.start_ns = stack.time_ns;
  launch.end_ns = stack.time_ns;
  return launch;
}

void GiveStack(const LaunchStack& stack, Launch& launch) {
  launch.has_stack = true;
  launch.stack = stack.stack;
  launch.python_stack = stack.python_stack;
  launch.stack_flags = stack.stack_flags;
  launch.pid = stack.pid;
  launch.tid = stack.tid;
}

class LaunchBuilder {
 public:
  LaunchBuilder(const Model& model, const Tracks& tracks, const ApiNames& names, CorrelateBy by)
      : model_(model), tracks_(tracks), names_(names), by_(by) {}

  LaunchTable Build() {
    FindProcesses();
    FindLaunches();
    launches_.EditTemplates([this](Launch& launch) { FindThread(launch); });
    if (by_ == CorrelateBy::kNesting) NestStacks();
    result_.with_id = launches_.size();
    AddProbeLaunches(model_.events, launches_, by_ != CorrelateBy::kId);
    launches_.EditTemplates([this](Launch& launch) { FindName(launch); });
    launches_.FindTracks(tracks_);
    return std::move(result_);
  }

 private:
  void FindProcesses();
  void FindLaunches();
  void Join(const Seen& seen);
  bool IsBefore(const IdAndPlace& stack, const IdAndPlace& call) const;
  void Begin(const Launch& launch);
  void Put(bool next_has_its_id);
  void AddCall(const ApiCall& call);
  void AddStack(const LaunchStack& stack);
  bool Joins(const Launch& launch, const LaunchStack& stack) const;
  void NoteThread(const Launch& launch);
  void FindThread(Launch& launch);
  void FindName(Launch& launch) const;
  void NestStacks();

  struct Thread {
    uint32_t pid;
    uint32_t tid;
  };
  using Threads = std::unordered_map<uint32_t, Thread>;  // by their number in the program

  const Model& model_;
  const Tracks& tracks_;
  const ApiNames& names_;
  const CorrelateBy by_;
  LaunchTable result_;
  LaunchList& launches_ = result_.launches;
  std::optional<Launch> last_;  // what else is known of it is not there yet
  bool shares_id_ = false;      // with the one before it
  std::unordered_map<InstanceId, Threads> threads_;
  Recent<decltype(threads_)> threads_of_{threads_};
  std::optional<std::pair<InstanceId, uint32_t>> noted_;  // the last one, as in Launch
};

void LaunchBuilder::FindProcesses() {
  for (const GpuProcess& event : model_.events.gpu_processes) {
    CudaProcess& process = result_.processes[event.instance];
    if (event.pid != 0) process.pid = event.pid;
    if (event.namespace_pid != 0) process.namespace_pid = event.namespace_pid;
  }
  const LaunchStackList& stacks = model_.events.launch_stacks;
  Recent processes(result_.processes);
  for (size_t i = 0; i < stacks.size(); ++i) {
    CudaProcess& process = processes[stacks.Get<&LaunchStack::instance>(i)];
    if (process.pid == 0) process.pid = stacks.Get<&LaunchStack::pid>(i);
  }
}

void LaunchBuilder::FindLaunches() {
  for (const auto& [instance, seen] : SortById(model_.events)) Join(seen);
}

// Where both have one time, the call comes first.
bool LaunchBuilder::IsBefore(const IdAndPlace& stack, const IdAndPlace& call) const {
  if (stack.id != call.id) return stack.id < call.id;
  return model_.events.launch_stacks.Get<&LaunchStack::time_ns>(stack.place) <
         model_.events.api_calls.Get<&ApiCall::start_ns>(call.place);
}

void LaunchBuilder::Join(const Seen& seen) {
  auto call = seen.calls.begin();
  auto stack = seen.stacks.begin();
  while (call != seen.calls.end() || stack != seen.stacks.end()) {
    const bool has_both = call != seen.calls.end() && stack != seen.stacks.end();
    if (has_both ? IsBefore(*stack, *call) : call == seen.calls.end()) {
      AddStack(model_.events.launch_stacks[stack++->place]);
    } else {
      AddCall(model_.events.api_calls[call++->place]);
    }
  }
  Put(false);
}

void LaunchBuilder::Begin(const Launch& launch) {
  Put(last_ && IdOf(*last_) == IdOf(launch));
  last_ = launch;
}

void LaunchBuilder::Put(bool next_has_its_id) {
  if (!last_) return;
  if (last_->has_stack) {
    const bool is_alone = !shares_id_ && !next_has_its_id;
    last_->stack_match = is_alone ? MatchKind::kById : MatchKind::kByIdAndTime;
  }
  launches_.push_back(*last_);
  last_.reset();
  shares_id_ = next_has_its_id;
}

void LaunchBuilder::AddCall(const ApiCall& call) {
  Launch begun;
  begun.instance = call.instance;
  begun.correlation_id = call.correlation_id;
  const bool joins = last_ && IdOf(*last_) == IdOf(begun) && !last_->has_call &&
                     call.start_ns - last_->start_ns < kToleranceNs;
  if (!joins) Begin(begun);
  Launch* const launch = &*last_;
  launch->domain = call.domain;
  launch->callback_id = call.callback_id;
  launch->has_call = true;
  launch->return_value = call.return_value;
  launch->graph_nodes = call.graph_nodes;
  launch->start_ns = call.start_ns;
  launch->end_ns = std::max(call.start_ns, call.end_ns);
  launch->program_tid = call.tid;
  NoteThread(*launch);
}

// Launches and stacks come in order of time, so `launch` is the last one before `stack`.
bool LaunchBuilder::Joins(const Launch& launch, const LaunchStack& stack) const {
  if (launch.instance != stack.instance || launch.correlation_id != stack.correlation_id) {
    return false;
  }
  const uint64_t slack_ns = launch.has_call ? kToleranceNs : kSameLaunchNs;
  return stack.time_ns <= launch.end_ns || stack.time_ns - launch.end_ns < slack_ns;
}

void LaunchBuilder::AddStack(const LaunchStack& stack) {
  if (last_ && Joins(*last_, stack)) {
    if (last_->has_stack) {
      ++result_.stacks_duplicate;
      return;
    }
  } else {
    Begin(WithoutCall(stack));
  }
  GiveStack(stack, *last_);
  NoteThread(*last_);
}

// Calls know their thread as the program sees it, stacks as the recorder does: what the pairs say
// of a thread holds for its calls without a stack.
void LaunchBuilder::NoteThread(const Launch& launch) {
  if (!launch.has_stack || !launch.has_call) return;
  // Most are of the thread of the one before.
  const std::pair thread(launch.instance, launch.program_tid);
  if (noted_ == thread) return;
  noted_ = thread;
  threads_of_[launch.instance].try_emplace(launch.program_tid, Thread{launch.pid, launch.tid});
}

// When all launches are there.
void LaunchBuilder::FindThread(Launch& launch) {
  if (launch.has_stack) return;
  launch.pid = result_.processes[launch.instance].pid;
  launch.tid = launch.program_tid;
  const Threads& known = threads_of_[launch.instance];
  if (const auto found = known.find(launch.program_tid); found != known.end()) {
    launch.pid = found->second.pid;
    launch.tid = found->second.tid;
  }
}

void LaunchBuilder::FindName(Launch& launch) const {
  launch.name = launch.probe != 0 ? names_.OfProbe(launch.probe)
                                  : names_.Of(launch.instance, launch.domain, launch.callback_id);
  launch.kind = names_.Kind(launch.name);
}

// Once more without the ids, which only have said which thread of the program is which of the
// recorder's.
void LaunchBuilder::NestStacks() {
  std::vector<Launch> launches = Unpacked(launches_);
  launches_ = LaunchList();
  std::erase_if(launches, [](const Launch& launch) { return !launch.has_call; });
  for (Launch& launch : launches) {
    launch.has_stack = false;
    launch.stack_match = MatchKind::kNone;
    launch.stack_flags = 0;
    launch.stack = StackId{};
    launch.python_stack = StackId{};
  }
  result_.stacks_duplicate = 0;
  std::vector<Launch> others;
  const CallsByThread calls(launches);
  for (const LaunchStack& stack : model_.events.launch_stacks) {
    const auto call =
        calls.Find({.pid = stack.pid, .tid = stack.tid, .start_ns = stack.time_ns, .end_ns = {}});
    if (call && launches[*call].has_stack) {
      ++result_.stacks_duplicate;
      continue;
    }
    if (call) launches[*call].stack_match = MatchKind::kByNesting;
    GiveStack(stack, call ? launches[*call] : others.emplace_back(WithoutCall(stack)));
  }
  launches.insert(launches.end(), others.begin(), others.end());
  std::stable_sort(launches.begin(), launches.end(), [](const Launch& a, const Launch& b) {
    return std::tuple(a.instance, a.correlation_id, a.start_ns) <
           std::tuple(b.instance, b.correlation_id, b.start_ns);
  });
  launches_ = LaunchList(launches);
}

}  // namespace

LaunchTable FindLaunches(const Model& model, const Tracks& tracks, const ApiNames& names,
                         CorrelateBy by) {
  return LaunchBuilder(model, tracks, names, by).Build();
}

}  // namespace xpu
