#include "report/query/off_cpu_sums.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include <sys/syscall.h>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/query/off_cpu_waits.h"

namespace xpu {
namespace {

uint64_t Duration(const Analysis& analysis, const OffCpuWait& wait) {
  const OffCpuTimes times = TimesOf(analysis, wait);
  return times.blocked_ns + times.runnable_ns;
}

template <typename Rows>
void SortByTotalTime(Rows& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.times.total > b.times.total; });
}

std::string_view ThreadNameOf(const Analysis& analysis, const Owner& owner) {
  const std::string_view name = analysis.tracks.NameOf(owner);
  return name.empty() ? "[unknown]" : name;
}

// Sums one lock.
struct Lock {
  std::vector<uint64_t> durations;
  std::set<uint32_t> threads;
  uint64_t open = 0;
  uint32_t holder = 0;
  std::map<std::string, uint64_t> releasers;  // how often
  std::map<PathId, uint64_t> paths;           // how long
};

// The most frequent ones first.
std::string ReleasersText(const std::map<std::string, uint64_t>& releasers) {
  constexpr size_t kMost = 3;
  std::vector<std::pair<uint64_t, std::string_view>> order;
  order.reserve(releasers.size());
  for (const auto& [name, count] : releasers) order.emplace_back(count, name);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (size_t i = 0; i < std::min(order.size(), kMost); ++i) {
    if (i > 0) text += ", ";
    text += order[i].second;
    if (order[i].first > 1) AppendFormat(text, " x{}", order[i].first);
  }
  if (order.size() > kMost) text += ", ...";
  return text;
}

template <typename Key>
Key KeyOfMost(const std::map<Key, uint64_t>& values) {
  const auto most =
      std::max_element(values.begin(), values.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == values.end() ? Key{} : most->first;
}

}  // namespace

SynchronizationCalls::SynchronizationCalls(const Analysis& analysis) {
  if (analysis.OffCpuWaits().empty() && analysis.OffCpuSums().empty()) return;
  std::unordered_map<const std::string*, bool> waits;  // by the name of the call
  for (const Launch& launch : analysis.correlation.launches) {
    if (!launch.has_call) continue;
    const std::string& name = ApiNameOf(analysis.api_names, launch);
    const auto [known, is_new] = waits.try_emplace(&name);
    if (is_new) known->second = name.find("Synchronize") != std::string::npos;
    if (!known->second) continue;
    threads_[launch.owner().thread()].push_back({launch.start_ns, launch.end_ns});
  }
  for (auto& [thread, calls] : threads_) SortByStart(calls);
}

bool SynchronizationCalls::IsInOne(const Owner& owner, uint64_t time_ns) const {
  const auto thread = threads_.find(owner.thread());
  return thread != threads_.end() && FindAt(thread->second, time_ns) != nullptr;
}

std::string WaitReasons::Of(const Owned<OffCpuWait>& wait) const {
  std::string name = WaitName(wait);
  const bool is_for_gpu = IsWait(wait.state) && gpu_calls_.IsInOne(wait.owner(), wait.start_ns);
  return is_for_gpu ? Format("GPU ({})", name) : name;
}

std::vector<RunningTime> FindRunningTimes(const Analysis& analysis) {
  std::map<ThreadKey, RunningTime> threads;
  const auto of = [&](const Owner& owner) -> RunningTime& {
    RunningTime& thread = threads[owner.thread()];
    thread.owner = owner;
    return thread;
  };
  for (const Owned<OffCpuSum>& sum : analysis.OffCpuSums()) {
    if (sum.state != OffCpuState::kRunning) continue;
    RunningTime& thread = of(sum.owner());
    thread.total_ns = AddSaturated(thread.total_ns, sum.duration);
  }
  const SampleWeights weights(analysis.model, analysis.shown);
  for (const uint32_t place : analysis.CpuSamples().places()) {
    const Owned<CpuSample>& sample = analysis.model.events.cpu_samples[place];
    if (!weights.IsOfTime(sample)) continue;
    of(sample.owner()).parts.push_back({place, weights.Of(sample)});
  }
  std::vector<RunningTime> found;
  for (auto& [key, thread] : threads) {
    uint64_t weight = 0;
    for (const RunningTime::Part& part : thread.parts) weight = AddSaturated(weight, part.ns);
    if (thread.total_ns == 0) thread.total_ns = weight;
    // Rounded so that the parts add up.
    if (weight == 0) thread.parts.clear();
    const auto total_ns = static_cast<long double>(thread.total_ns);
    long double sum = 0;
    uint64_t given_ns = 0;
    for (RunningTime::Part& part : thread.parts) {
      sum += static_cast<long double>(part.ns);
      const long double share = std::min(1.0L, sum / static_cast<long double>(weight));
      const auto until_ns = static_cast<uint64_t>(std::min(total_ns, total_ns * share));
      part.ns = until_ns - std::min(given_ns, until_ns);
      given_ns = std::max(given_ns, until_ns);
    }
    if (thread.total_ns > 0) found.push_back(std::move(thread));
  }
  return found;
}

bool IsOfKernelThread(const Analysis& analysis, const OffCpuWait& wait) {
  const bool is_in_call = wait.system_call != -1;
  if (is_in_call || !IsWait(wait.state) || wait.state == OffCpuState::kStopped) return false;
  const bool is_known = (wait.stack_flags & kStackComplete) != 0;
  if (!wait.stack) return is_known && wait.state == OffCpuState::kBlocked;
  const CaptureTables& tables = *analysis.model.tables;
  for (StackId stack = wait.stack; stack; stack = tables.Node(stack).caller) {
    if (tables.IsLost(stack) || tables.Node(stack).frame.kind != FrameKind::kKernel) return false;
  }
  return is_known;
}

std::vector<OffCpuReason> OffCpuReasons(Analysis& analysis, CallPaths& paths) {
  ReadablePaths readable(analysis, paths.tree());
  struct Times {
    std::vector<uint64_t> durations;
    uint64_t runnable_ns = 0;
  };
  const WaitReasons reasons(analysis);
  std::map<std::pair<std::string, PathId>, Times> waits;
  for (const Owned<OffCpuWait>& wait : analysis.OffCpuWaits()) {
    Times& times = waits[{reasons.Of(wait), readable.Of(paths.OfWait(wait))}];
    times.durations.push_back(Duration(analysis, wait));
    times.runnable_ns = AddSaturated(times.runnable_ns, TimesOf(analysis, wait).runnable_ns);
  }
  std::map<std::pair<std::string, PathId>, OffCpuReason> sums;
  for (const Owned<OffCpuSum>& sum : analysis.OffCpuSums()) {
    if (sum.state == OffCpuState::kRunning) continue;
    const std::string name = Format("{}, short", StateName(sum.state));
    const PathId path = readable.Of(paths.OfSum(sum));
    OffCpuReason& row = sums[{name, path}];
    row.times.name = name;
    row.times.count += sum.count;
    row.times.total = AddSaturated(row.times.total, sum.duration);
    row.runnable_ns = AddSaturated(row.runnable_ns, sum.ready_duration);
    row.path = path;
    row.is_sum = true;
  }
  std::vector<OffCpuReason> rows;
  rows.reserve(waits.size() + sums.size());
  for (auto& [key, times] : waits) {
    rows.push_back({.times = Summarize(key.first, times.durations),
                    .path = key.second,
                    .runnable_ns = times.runnable_ns});
  }
  for (auto& [key, row] : sums) {
    if (row.times.count > 0) {
      row.times.average =
          static_cast<double>(row.times.total) / static_cast<double>(row.times.count);
    }
    rows.push_back(std::move(row));
  }
  SortByTotalTime(rows);
  return rows;
}

std::vector<WakeUps> FindWakeUps(Analysis& analysis, CallPaths& paths) {
  ReadablePaths readable(analysis, paths.tree());
  const WaitReasons reasons(analysis);
  std::map<std::tuple<std::string, std::string, std::string, PathId>, std::vector<uint64_t>> all;
  for (const Owned<OffCpuWait>& wait : analysis.OffCpuWaits()) {
    if (wait.waker == OffCpuWaker::kUnknown || !IsWait(wait.state)) continue;
    const bool is_thread = wait.waker == OffCpuWaker::kThread;
    const std::string_view name = analysis.model.Text(wait.waker_name);
    const PathId path = is_thread ? readable.Of(paths.OfWaker(wait)) : PathId{};
    all[{is_thread ? std::string(name) : WakerName(analysis, wait),
         std::string(ThreadNameOf(analysis, wait.owner())), reasons.Of(wait), path}]
        .push_back(TimesOf(analysis, wait).blocked_ns);
  }
  std::vector<WakeUps> rows;
  rows.reserve(all.size());
  for (auto& [key, durations] : all) {
    rows.push_back({.times = Summarize({}, durations),
                    .waker = std::get<0>(key),
                    .woken = std::get<1>(key),
                    .reason = std::get<2>(key),
                    .path = std::get<3>(key)});
  }
  SortByTotalTime(rows);
  return rows;
}

std::vector<LockWaits> FindLockWaits(Analysis& analysis, CallPaths& paths) {
  ReadablePaths readable(analysis, paths.tree());
  std::map<std::tuple<ProcessId, uint32_t, uint64_t>, Lock> locks;
  for (const Owned<OffCpuWait>& wait : analysis.OffCpuWaits()) {
    if (wait.system_call != SYS_futex || !IsWait(wait.state)) continue;
    const uint64_t duration_ns = Duration(analysis, wait);
    Lock& lock = locks[{wait.process, wait.pid, wait.argument}];
    lock.durations.push_back(duration_ns);
    lock.threads.insert(wait.tid);
    lock.open += wait.is_open ? 1 : 0;
    if (wait.lock_holder != 0) lock.holder = wait.lock_holder;
    if (wait.waker != OffCpuWaker::kUnknown) ++lock.releasers[WakerName(analysis, wait)];
    uint64_t& at_path = lock.paths[readable.Of(paths.OfWait(wait))];
    at_path = AddSaturated(at_path, duration_ns);
  }
  std::vector<LockWaits> rows;
  rows.reserve(locks.size());
  for (auto& [key, lock] : locks) {
    rows.push_back({.times = Summarize({}, lock.durations),
                    .process = std::get<0>(key),
                    .pid = std::get<1>(key),
                    .address = std::get<2>(key),
                    .threads = lock.threads.size(),
                    .open = lock.open,
                    .holder = lock.holder,
                    .releasers = ReleasersText(lock.releasers),
                    .path = KeyOfMost(lock.paths)});
  }
  SortByTotalTime(rows);
  return rows;
}

uint64_t ThreadStates::total_ns() const {
  return AddSaturated(running_ns, AddSaturated(waiting_ns, runnable_ns));
}

std::vector<ThreadStates> FindThreadStates(const Analysis& analysis) {
  std::map<ThreadKey, ThreadStates> threads;
  const auto of = [&](const Owner& owner) -> ThreadStates& {
    ThreadStates& thread = threads[owner.thread()];
    thread.owner = owner;
    return thread;
  };
  const auto add = [](uint64_t& to, uint64_t ns) { to = AddSaturated(to, ns); };
  for (const Owned<OffCpuWait>& wait : analysis.OffCpuWaits()) {
    const OffCpuTimes times = TimesOf(analysis, wait);
    ThreadStates& thread = of(wait.owner());
    add(IsWait(wait.state) ? thread.waiting_ns : thread.runnable_ns, times.blocked_ns);
    add(thread.runnable_ns, times.runnable_ns);
  }
  for (const Owned<OffCpuSum>& sum : analysis.OffCpuSums()) {
    if (sum.state == OffCpuState::kRunning) continue;
    ThreadStates& thread = of(sum.owner());
    const uint64_t ready_ns = std::min(sum.ready_duration, sum.duration);
    add(IsWait(sum.state) ? thread.waiting_ns : thread.runnable_ns, sum.duration - ready_ns);
    add(thread.runnable_ns, ready_ns);
  }
  const bool has_off_cpu = !threads.empty() || !analysis.OffCpuSums().empty();
  if (has_off_cpu) {
    for (const RunningTime& running : FindRunningTimes(analysis)) {
      add(of(running.owner).running_ns, running.total_ns);
    }
  }
  std::vector<ThreadStates> rows;
  rows.reserve(threads.size());
  for (const auto& [key, thread] : threads) rows.push_back(thread);
  // Threads that only wait are as old as the recording, and the least interesting ones.
  const auto order = [](const ThreadStates& thread) {
    return std::pair(AddSaturated(thread.running_ns, thread.runnable_ns), thread.waiting_ns);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const ThreadStates& a, const ThreadStates& b) {
    return order(a) > order(b);
  });
  return rows;
}

std::vector<Deadlock> FindDeadlocks(const Analysis& analysis) {
  using Thread = std::pair<uint32_t, uint32_t>;  // process, thread
  std::map<Thread, const Owned<OffCpuWait>*> waiting;
  for (const Owned<OffCpuWait>& wait : analysis.OffCpuWaits()) {
    if (wait.is_open && wait.lock_holder != 0) waiting[{wait.pid, wait.tid}] = &wait;
  }
  std::vector<Deadlock> found;
  std::set<Thread> seen;
  for (const auto& [first, wait] : waiting) {
    Deadlock chain;
    std::set<Thread> in_chain;
    Thread at = first;
    while (!seen.contains(at) && waiting.contains(at)) {
      seen.insert(at);
      in_chain.insert(at);
      chain.push_back(waiting[at]);
      at.second = chain.back()->lock_holder;
    }
    if (!in_chain.contains(at)) continue;
    const auto begin = std::find_if(chain.begin(), chain.end(),
                                    [&](const OffCpuWait* link) { return link->tid == at.second; });
    found.emplace_back(begin, chain.end());
  }
  return found;
}

}  // namespace xpu
