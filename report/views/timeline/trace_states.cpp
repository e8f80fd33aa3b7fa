#include "report/views/timeline/trace_states.h"

#include <algorithm>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/query/off_cpu_names.h"
#include "report/query/off_cpu_times.h"

namespace xpu {

void TraceStates::Find() {
  std::map<ThreadKey, Thread> threads;
  const auto of = [&](const Owner& owner) -> Thread& {
    Thread& thread = threads[owner.thread()];
    thread.owner = owner;
    return thread;
  };
  for (const Owned<OffCpuWait>& wait : analysis_.OffCpuWaits()) {
    Thread& thread = of(wait.owner());
    const OffCpuTimes times = TimesOf(wait);
    thread.waits.push_back(&wait);
    thread.recorded_ns = AddSaturated(thread.recorded_ns, times.blocked_ns + times.runnable_ns);
  }
  for (const Owned<OffCpuSum>& sum : analysis_.OffCpuSums()) {
    Thread& thread = of(sum.owner());
    thread.recorded_ns = AddSaturated(thread.recorded_ns, sum.duration);
    thread.end_ns = std::max(thread.end_ns, sum.time_ns);
  }
  for (auto& [key, thread] : threads) AddThread(thread);
  std::stable_sort(states_.begin(), states_.end(),
                   [](const State& a, const State& b) { return a.start_ns < b.start_ns; });
}

void TraceStates::AddThread(const Thread& thread) {
  std::vector<const Owned<OffCpuWait>*> waits = thread.waits;
  std::sort(waits.begin(), waits.end(),
            [](const OffCpuWait* a, const OffCpuWait* b) { return a->start_ns < b->start_ns; });
  uint64_t until_ns = thread.end_ns - std::min(thread.recorded_ns, thread.end_ns);
  if (!waits.empty() && (thread.end_ns == 0 || waits.front()->start_ns < until_ns)) {
    until_ns = waits.front()->start_ns;
  }
  begins_[thread.owner.thread()] = until_ns;
  const auto run_until = [&](uint64_t ns) {
    if (ns > until_ns) {
      states_.push_back({.start_ns = until_ns, .end_ns = ns, .owner = thread.owner});
    }
    until_ns = std::max(until_ns, ns);
  };
  for (const Owned<OffCpuWait>* wait : waits) {
    if (wait->start_ns < until_ns) continue;  // overlaps another one: the capture is damaged
    run_until(wait->start_ns);
    AddWait(thread.owner, *wait);
    until_ns = std::max(until_ns, wait->end_ns);
  }
  run_until(thread.end_ns);
}

void TraceStates::AddWait(const Owner& owner, const Owned<OffCpuWait>& wait) {
  const OffCpuTimes times = TimesOf(wait);
  const uint64_t ready_ns = wait.start_ns + times.blocked_ns;
  State state{.start_ns = wait.start_ns, .end_ns = ready_ns, .owner = owner, .wait = &wait};
  if (times.blocked_ns > 0) {
    state.kind = Kind::kWaiting;
    states_.push_back(state);
  }
  if (times.runnable_ns > 0) {
    state.kind = Kind::kRunnable;
    state.start_ns = ready_ns;
    state.end_ns = ready_ns + times.runnable_ns;
    states_.push_back(state);
  }
}

const TraceName& TraceStates::NameOf(const std::string& name) {
  const auto [at, is_new] = titles_.try_emplace(name);
  if (is_new) at->second = sink_.Name(name, "state");
  return at->second;
}

void TraceStates::Write(size_t at) {
  const State& state = states_[at];
  const TraceTrack track = tracks_.States(state.owner);
  if (state.wait == nullptr) {
    sink_.AdjacentSlice(track, NameOf("running"), state.start_ns, state.end_ns);
    return;
  }
  const Owned<OffCpuWait>& wait = *state.wait;
  const bool is_named = state.kind == Kind::kWaiting || !IsWait(wait.state);
  sink_.AdjacentSlice(track, NameOf(is_named ? WaitName(wait) : "runnable"), state.start_ns,
                      state.end_ns);
  if (state.kind == Kind::kWaiting) {
    if (wait.system_call >= 0) sink_.ArgText("argument", Format("{:#x}", wait.argument));
    if (wait.waker != OffCpuWaker::kUnknown) {
      sink_.ArgText("woken by", WakerName(analysis_, wait));
      if (wait.waker_stack) sink_.ArgText("waker", names_.StackOf(paths_.OfWaker(wait)));
    }
    if (wait.is_open) sink_.ArgText("end", "not ended");
  }
  if (wait.stack) sink_.ArgText("stack", names_.StackOf(paths_.OfWait(wait)));
  if (state.kind == Kind::kRunnable) WriteArrow(state, track);
}

void TraceStates::WriteArrow(const State& state, TraceTrack track) {
  const Owned<OffCpuWait>& wait = *state.wait;
  if (wait.waker != OffCpuWaker::kThread) return;
  const Owner waker = WakerOf(analysis_, wait);
  const auto begin = begins_.find(waker.thread());
  if (begin == begins_.end() || begin->second >= state.start_ns) return;
  sink_.Arrow("wakeup", 0, tracks_.States(waker), state.start_ns, track, state.start_ns);
}

}  // namespace xpu
