#include "report/views/timeline/trace_slices.h"

#include <algorithm>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/critical_path/critical_path.h"
#include "report/query/off_cpu_waits.h"

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

void TraceCollectives::Find() {
  first_.resize(found_.all.size());
  for (size_t i = 0; i < found_.all.size(); ++i) {
    const Collective& collective = found_.all[i];
    for (size_t part = 0; part < collective.parts.size(); ++part) {
      const uint32_t work = collective.parts[part].work;
      if (work != CollectivePart::kNone && analysis_.shown.work.Has(work)) {
        slices_.push_back({i, part});
      }
    }
  }
  std::stable_sort(slices_.begin(), slices_.end(), [this](const Slice& a, const Slice& b) {
    return PartOf(a).arrived_ns < PartOf(b).arrived_ns;
  });
}

void TraceCollectives::Write(size_t at, uint32_t& arrows) {
  const Collective& collective = found_.all[slices_[at].collective];
  const CollectivePart& part = PartOf(slices_[at]);
  const JobRank& rank = analysis_.job.ranks()[part.rank];
  const TraceTrack track = tracks_.Collectives(rank, part.arrived_ns, part.end_ns);
  sink_.Slice(track, sink_.Name(collective.operation, "collective"), part.arrived_ns, part.end_ns);
  First& first = first_[slices_[at].collective];
  const bool is_last = slices_[at].part == collective.awaited;
  const bool is_first = first.track.tid == 0;
  const uint32_t last_work = collective.parts[collective.awaited].work;
  if (is_first && !is_last && analysis_.shown.work.Has(last_work)) {
    first = {track, ++arrows, part.arrived_ns};
    sink_.BeginArrows(first.arrow, 1);
  }
  sink_.ArgText("communicator", collective.match == CollectiveMatch::kByNvtx
                                    ? Format("{:#x}", collective.communicator)
                                    : Format("stream {}", collective.communicator));
  sink_.Arg("sequence", collective.sequence);
  if (collective.bytes != 0) sink_.Arg("bytes", collective.bytes);
  if (!collective.reduction.empty()) sink_.ArgText("reduction", collective.reduction);
  sink_.Arg("ranks", collective.ranks);
  if (collective.match == CollectiveMatch::kByOrder) sink_.ArgText("matched", "by order");
  if (part.is_grouped) sink_.ArgText("kernel", "of a group");
  sink_.ArgThousandths("waited_us", part.waited_ns);
  if (collective.arrived < 2) return;
  sink_.Arg("last_rank", analysis_.job.ranks()[collective.parts[collective.last].rank].number);
  if (!is_last || first.arrow == 0) return;
  sink_.Arrow("wait", first.arrow, first.track, first.arrived_ns, track, part.arrived_ns);
}

void TraceCritical::Find(const std::vector<StepSeries>& steps,
                         const std::optional<StepRange>& range) {
  const CriticalWindow window = FindCriticalSteps(analysis_, steps, range);
  if (window.steps == 0) return;
  const CriticalPath critical(analysis_, paths_, window);
  if (critical.window().steps == 0) return;
  thread_ = critical.window().thread;
  for (const CriticalSegment& segment : critical.segments()) {
    const Edge& edge = segment.edge;
    Slice slice{.start_ns = segment.start_ns,
                .end_ns = segment.end_ns,
                .assumed_ns = edge.is_assumed ? segment.ns() : 0,
                .name = {}};
    const Owner owner = critical.OwnerOf(edge);
    const bool runs = edge.kind == EdgeKind::kRunning || edge.kind == EdgeKind::kCall;
    if (IsGpuWork(edge.kind)) {
      slice.name = gpu_names_.Title(analysis_.correlation.work[edge.index]);
    } else if (runs) {
      slice.name = analysis_.processes.ThreadTitle(owner.process, owner.tid);
    } else {
      slice.name = EdgeKindName(edge.kind);
    }
    if (runs && !slices_.empty() && slices_.back().name == slice.name &&
        slices_.back().end_ns == slice.start_ns) {
      slices_.back().end_ns = slice.end_ns;
      slices_.back().assumed_ns += slice.assumed_ns;
    } else {
      slices_.push_back(std::move(slice));
    }
  }
}

void TraceCritical::Write(size_t at) {
  const Slice& slice = slices_[at];
  if (track_.tid == 0) track_ = tracks_.Critical(thread_);
  const auto [name, is_new] = names_.try_emplace(slice.name);
  if (is_new) name->second = sink_.Name(slice.name, "critical");
  sink_.AdjacentSlice(track_, name->second, slice.start_ns, slice.end_ns);
  if (slice.assumed_ns > 0) sink_.ArgThousandths("assumed_us", slice.assumed_ns);
}

}  // namespace xpu
