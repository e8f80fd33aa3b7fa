#include "report/trace/probe_launches.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

namespace xpu {
namespace {

// The first launch of a kernel may load its module: how much later the driver's function may be
// entered than the runtime's around it, when the runtime's return was not seen.
constexpr uint64_t kLongestWithoutReturnNs = 1'000'000'000;

using Purposes = std::unordered_map<uint32_t, ProbePurpose>;

Purposes PurposesOf(const LoadedEvents& events) {
  Purposes purposes;
  for (const Probe& probe : events.probes) purposes.try_emplace(probe.probe, probe.purpose);
  return purposes;
}

bool IsLaunch(const Purposes& purposes, uint32_t probe) {
  const auto found = purposes.find(probe);
  return found != purposes.end() && (found->second == ProbePurpose::kRuntimeLaunch ||
                                     found->second == ProbePurpose::kDriverLaunch);
}

// Each entry with its return: of one function the last entry before it.
std::vector<ProbeCall> PairOneThread(const std::vector<Owned<ProbeHit>>& hits,
                                     std::span<const uint32_t> indexes) {
  std::vector<ProbeCall> calls;
  std::map<uint32_t, size_t> open;  // by probe
  for (const uint32_t index : indexes) {
    const ProbeHit& hit = hits[index];
    if (!hit.is_return) {
      open[hit.probe] = calls.size();
      calls.push_back({.probe = hit.probe,
                       .entry = index,
                       .pid = hit.pid,
                       .tid = hit.tid,
                       .start_ns = hit.time_ns,
                       .end_ns = hit.time_ns});
      continue;
    }
    const auto entered = open.find(hit.probe);
    if (entered == open.end()) continue;  // the entry was before the recording, or lost
    ProbeCall& call = calls[entered->second];
    call.has_return = true;
    call.return_value = hit.return_value;
    call.end_ns = hit.time_ns;
    open.erase(entered);
  }
  return calls;
}

// An outermost call while the calls of its thread are gone through.
struct Outer {
  ProbeCall call;
  bool is_runtime = false;
  bool holds_driver = false;

  bool Holds(const ProbeCall& inner) const {
    if (call.has_return) return inner.start_ns <= call.end_ns;
    // For a call whose return is missing: the runtime launches with one call of the driver, and
    // never calls itself.
    if (!is_runtime || holds_driver || inner.probe == call.probe) return false;
    return inner.start_ns - call.start_ns < kLongestWithoutReturnNs;
  }
};

void AppendOutermost(const std::vector<ProbeCall>& calls, const Purposes& purposes,
                     std::vector<ProbeCall>& outermost) {
  Outer outer;
  for (const ProbeCall& call : calls) {
    const bool is_runtime = purposes.at(call.probe) == ProbePurpose::kRuntimeLaunch;
    if (outer.call.probe != 0 && outer.Holds(call)) {
      outer.holds_driver = outer.holds_driver || !is_runtime;
      uint64_t& end_ns = outermost.back().end_ns;
      if (!outer.call.has_return) end_ns = std::max(end_ns, call.end_ns);
      continue;
    }
    outermost.push_back(call);
    outer = {call, is_runtime, false};
  }
}

Launch ToLaunch(const ProbeCall& call, const ProbeHit& entry, ApiDomain domain, MatchKind match) {
  Launch launch;
  launch.domain = domain;
  launch.has_call = true;
  launch.has_stack = true;
  launch.stack_match = match;
  launch.stack_flags = entry.stack_flags;
  launch.stack = entry.stack;
  launch.python_stack = entry.python_stack;
  launch.pid = call.pid;
  launch.tid = call.tid;
  launch.return_value = call.return_value;
  launch.probe = call.probe;
  launch.kernel = entry.kernel;
  launch.start_ns = call.start_ns;
  launch.end_ns = call.end_ns;
  return launch;
}

}  // namespace

CallsByThread::CallsByThread(std::span<const Launch> launches) : launches_(launches) {
  for (uint32_t i = 0; i < launches.size(); ++i) {
    if (launches[i].has_call) calls_[{launches[i].pid, launches[i].tid}].push_back(i);
  }
  for (auto& [thread, calls] : calls_) {
    std::sort(calls.begin(), calls.end(), [&](uint32_t a, uint32_t b) {
      return std::tuple(launches[a].start_ns, a) < std::tuple(launches[b].start_ns, b);
    });
  }
}

std::optional<uint32_t> CallsByThread::Find(const Moment& moment) const {
  const auto found = calls_.find({moment.pid, moment.tid});
  if (found == calls_.end()) return std::nullopt;
  const auto next =
      std::partition_point(found->second.begin(), found->second.end(),
                           [&](uint32_t i) { return launches_[i].start_ns <= moment.start_ns; });
  if (next != found->second.begin() && moment.start_ns <= launches_[*(next - 1)].end_ns) {
    return *(next - 1);
  }
  if (next == found->second.end()) return std::nullopt;
  const uint64_t start_ns = launches_[*next].start_ns;
  const bool holds =
      moment.end_ns ? start_ns <= *moment.end_ns : start_ns - moment.start_ns < kToleranceNs;
  if (!holds || start_ns >= moment.next_start_ns) return std::nullopt;
  return *next;
}

std::vector<ProbeCall> NestProbeHits(const LoadedEvents& events) {
  const Purposes purposes = PurposesOf(events);
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> threads;
  for (uint32_t i = 0; i < events.probe_hits.size(); ++i) {
    const ProbeHit& hit = events.probe_hits[i];
    if (hit.probe != 0 && IsLaunch(purposes, hit.probe)) threads[{hit.pid, hit.tid}].push_back(i);
  }
  std::vector<ProbeCall> outermost;
  for (const auto& [thread, indexes] : threads) {
    AppendOutermost(PairOneThread(events.probe_hits.rows(), indexes), purposes, outermost);
  }
  return outermost;
}

void AddProbeLaunches(const LoadedEvents& events, LaunchList& launches, bool gives_stacks) {
  const std::vector<ProbeCall> probed = NestProbeHits(events);
  if (probed.empty()) return;
  const Purposes purposes = PurposesOf(events);
  std::vector<Launch> added;
  std::vector<Launch> all = Unpacked(launches);
  launches = LaunchList();
  const CallsByThread calls(all);
  for (size_t i = 0; i < probed.size(); ++i) {
    const ProbeCall& call = probed[i];
    const bool is_last =
        i + 1 == probed.size() || probed[i + 1].pid != call.pid || probed[i + 1].tid != call.tid;
    const ProbeHit& entry = events.probe_hits[call.entry];
    const auto at = calls.Find(
        {.pid = call.pid,
         .tid = call.tid,
         .start_ns = call.start_ns,
         .end_ns = call.has_return ? std::optional(call.end_ns) : std::nullopt,
         .next_start_ns = is_last ? std::numeric_limits<uint64_t>::max() : probed[i + 1].start_ns});
    if (!at) {
      const bool is_runtime = purposes.at(call.probe) == ProbePurpose::kRuntimeLaunch;
      added.push_back(ToLaunch(call, entry, is_runtime ? ApiDomain::kRuntime : ApiDomain::kDriver,
                               gives_stacks ? MatchKind::kByNesting : MatchKind::kNone));
    } else if (Launch& launch = all[*at]; gives_stacks && !launch.has_stack) {
      launch.has_stack = true;
      launch.stack_match = MatchKind::kByNesting;
      launch.stack = entry.stack;
      launch.python_stack = entry.python_stack;
      launch.stack_flags = entry.stack_flags;
    }
  }
  std::stable_sort(added.begin(), added.end(),
                   [](const Launch& a, const Launch& b) { return a.start_ns < b.start_ns; });
  all.insert(all.end(), added.begin(), added.end());
  launches = LaunchList(all);
}

}  // namespace xpu
